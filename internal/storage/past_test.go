package storage

import (
	"errors"
	"testing"

	"github.com/weirstream/weir/internal/snapshot"
)

// TestLookAtJobDir: who looks sees what a start would, also while the job runs, and leaves no trace.
func TestLookAtJobDir(t *testing.T) {
	disk := Memory()
	look := func() Past {
		t.Helper()
		p, err := LookAtJobDir(disk, "/c", testJob)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	none := look()
	if _, _, err := none.Latest(); !errors.Is(err, ErrNone) || !none.Fresh() {
		t.Errorf("before the first run: %v", err)
	}
	if _, err := disk.Stat("/c"); err == nil {
		t.Error("looking has made the directory")
	}
	d, err := OpenJobDir(disk, "/c", testJob)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := look().Latest(); !errors.Is(err, ErrNone) {
		t.Errorf("before the first checkpoint: %v", err)
	}
	location, err := d.CreateLocation(1, snapshot.Checkpoint, "")
	if err != nil {
		t.Fatal(err)
	}
	m := &snapshot.Metadata{ID: 1, Job: testJob, Kind: snapshot.Checkpoint, Format: snapshot.Native, Run: d.Run()}
	if _, err := d.Publish(location, m); err != nil {
		t.Fatal(err)
	}
	p := look()
	if m, at, err := p.Latest(); err != nil || m.ID != 1 || at != location || p.Fresh() || !p.Owns(at) {
		t.Errorf("%v at %s, %v", m, at, err)
	}
	if all, err := p.Completed(); err != nil || len(all) != 1 || d.Run() != 1 {
		t.Errorf("%v, %v, run %d", all, err, d.Run())
	}
	if _, err := LookAtJobDir(disk, "/c", "no job"); err == nil {
		t.Error("there is no such job")
	}
}
