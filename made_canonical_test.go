package weir_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/weirstream/weir/internal/inspect"
	"github.com/weirstream/weir/internal/storage"
)

// TestWhatIsMadeCanonicalIsRestored: a job that has every kind of state goes on from what is made of its checkpoints and savepoints, of every
// version, without its program; at the same parallelism and at others. All that it would have told is told, once.
func TestWhatIsMadeCanonicalIsRestored(t *testing.T) {
	for _, s := range oldSnapshots {
		if s.unaligned {
			continue // it has records in flight, and is refused
		}
		disk, dir := storage.Memory(), filepath.Join(t.TempDir(), s.dir)
		if err := makeCanonical(disk, filepath.Join("testdata", "compat", s.dir), dir); err != nil {
			t.Fatal(err)
		}
		for _, p := range []int{2, 1, 3} {
			t.Run(fmt.Sprint(s.dir, " at ", p), func(t *testing.T) {
				inLab(t, func(l *lab) { l.restoreOld(dir, p) })
			})
		}
	}
}

// makeCanonical writes to a directory what is made of the snapshot in another one. The work is done on a disk of its own, where files
// that the snapshot names absolutely are where it says.
func makeCanonical(disk storage.FS, of, to string) error {
	if err := loadOld(of, disk, "/moved"); err != nil {
		return err
	}
	from, err := inspect.Open(disk, "/moved")
	if err != nil {
		return err
	}
	made, err := from.WriteCanonical("/made")
	if err == nil {
		err = saveOld(disk, made, to)
	}
	return errors.Join(err, from.Close())
}
