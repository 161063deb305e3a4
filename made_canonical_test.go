package weir_test

import (
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
		from, err := inspect.Open(storage.Disk(), filepath.Join("testdata", "compat", s.dir))
		if err != nil {
			t.Fatal(err)
		}
		dir, err := from.WriteCanonical(filepath.Join(t.TempDir(), s.dir))
		if err != nil {
			t.Fatal(err)
		}
		if err := from.Close(); err != nil {
			t.Error(err)
		}
		for _, p := range []int{2, 1, 3} {
			t.Run(fmt.Sprint(s.dir, " at ", p), func(t *testing.T) {
				inLab(t, func(l *lab) { l.restoreOld(dir, p) })
			})
		}
	}
}
