package trial

import (
	"errors"
	"io"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

// TestACopiedDirectory: a job's directory was copied to another place, and the job goes on there. Its checkpoint refers to files where they
// were; the next ones do not: they are whole, and then build upon one another.
func TestACopiedDirectory(t *testing.T) {
	onStand(t, func(s *stand) {
		env := onFiles(s.env(2, seldom))
		small.build(env, s.stage(small.records, smallRate))
		r := s.start(env)
		pass(400 * time.Millisecond)
		r.checkpoint()
		pass(20 * time.Millisecond)
		s.referring(r.checkpoint())
		r.crash()
		s.copied("/checkpoints", "/elsewhere")

		env = onFiles(s.resumed(2, seldom, "latest"), "execution.checkpointing.dir", "/elsewhere")
		small.build(env, s.stage(small.records, smallRate))
		r = s.start(env)
		for n := range 3 {
			pass(time.Millisecond)
			m := s.read(r.checkpoint())
			if size := m.Sizes(); (n == 0) != (size.New == size.State) {
				s.Errorf("checkpoint %d after the copy: %+v", n+1, size)
			}
			_ = m.Handles(func(_ snapshot.Owner, h *snapshot.Handle) error { // which never fails
				if path.IsAbs(h.File) && !strings.HasPrefix(h.File, "/elsewhere/") {
					s.Errorf("checkpoint %d after the copy refers to %s", n+1, h.File)
				}
				return nil
			})
		}
		r.cancel()
		<-r.done
	})
}

// copied copies a directory.
func (s *stand) copied(from, to string) {
	s.Helper()
	entries, err := s.disk.List(from)
	if err == nil {
		err = storage.MkdirAll(s.disk, to)
	}
	for _, e := range entries {
		if e.Dir {
			s.copied(path.Join(from, e.Name), path.Join(to, e.Name))
		} else if err == nil {
			err = s.copyFile(path.Join(from, e.Name), path.Join(to, e.Name))
		}
	}
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stand) copyFile(from, to string) error {
	r, err := s.disk.Open(from)
	if err != nil {
		return err
	}
	w, err := s.disk.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, io.NewSectionReader(r, 0, r.Size()))
	return errors.Join(err, w.Close(), r.Close())
}
