package storage

import (
	"cmp"
	"errors"
	"fmt"
	iofs "io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"testing"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// The crash test of shared files: a job takes incremental checkpoints, up to two at a time, keeps one or two, gives some up, and has late
// uploads. Its life is cut after each of its file operations, by a crash of the machine or of the process alone. Then
//
//   - every checkpoint that is there has every file that it refers to, byte for byte;
//   - the next run goes on from the newest, and when it has completed a checkpoint, and after a sweep, shared/ has exactly the files that
//     completed checkpoints name;
//   - at the end of a run that was not cut the same holds, without a sweep.

// builder is a job's life as far as its checkpoints go.
type builder struct {
	fs       FS // what the job works on
	healthy  FS // what lies below it
	d        *JobDir
	rng      *rand.Rand
	retained int
	failing  bool        // now and then a deletion fails
	done     []Completed // ascending, not retired
	pending  []*building
}

// building is a checkpoint under way.
type building struct {
	id       base.CheckpointID
	location string
	upon     base.CheckpointID  // pinned; 0: whole
	m        *snapshot.Metadata // nil: it is not written whole
	asked    bool               // to be published
}

// open begins a run with what is there, and checks it.
func (b *builder) open() (err error) {
	if b.d, err = OpenJobDir(b.fs, "/ckpt", testJob); err != nil {
		return err
	}
	if b.done, err = b.d.Completed(); err != nil {
		return err
	}
	if _, _, err := b.d.Latest(); err != nil && !errors.Is(err, ErrNone) {
		return err
	}
	return b.verify()
}

// verify reads everything that is completed.
func (b *builder) verify() error {
	for _, c := range b.done {
		if err := verifyFilesOf(b.healthy, c.Metadata, c.Location); err != nil {
			return fmt.Errorf("checkpoint %d: %w", c.Metadata.ID, err)
		}
	}
	return nil
}

// live does so many random things.
func (b *builder) live(steps int) error {
	for range steps {
		if err := b.step(); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) step() error {
	switch n := b.rng.IntN(10); {
	case len(b.pending) == 0 || n < 2 && len(b.pending) < 2:
		return b.begin()
	case n < 7:
		return b.complete(b.rng.IntN(len(b.pending)))
	default:
		return b.giveUp(b.rng.IntN(len(b.pending)))
	}
}

// begin begins a checkpoint upon the newest that is completed, and has it written.
func (b *builder) begin() error {
	p := &building{id: b.d.LargestID() + 1}
	var refers []snapshot.Handle
	if len(b.done) > 0 && b.rng.IntN(8) > 0 {
		upon := b.done[len(b.done)-1].Metadata
		p.upon = upon.ID
		for _, h := range filesOf(upon) {
			if b.rng.IntN(4) > 0 { // else all of it has changed since
				refers = append(refers, h)
			}
		}
	}
	var err error
	if p.location, err = b.d.CreateLocation(p.id, snapshot.Checkpoint, ""); err != nil {
		return err
	}
	b.pending = append(b.pending, p)
	m, err := incremental(b.d.Writer(p.location, smallFiles), testJob, p.id, refers...)
	if err == nil {
		p.m = m
	}
	return err
}

// complete publishes a checkpoint, gives up older ones that are under way, and retires.
func (b *builder) complete(i int) error {
	p := b.pending[i]
	p.asked = true
	if _, err := b.d.Publish(p.location, p.m); err != nil {
		return err
	}
	b.pending = slices.Delete(b.pending, i, i+1)
	b.done = append(b.done, Completed{Metadata: p.m, Location: p.location})
	slices.SortFunc(b.done, func(x, y Completed) int { return cmp.Compare(x.Metadata.ID, y.Metadata.ID) })
	for j := 0; j < len(b.pending); j++ {
		if b.pending[j].id < p.id && b.rng.IntN(2) == 0 { // else it was sealed already
			if err := b.giveUp(j); err != nil {
				return err
			}
			j--
		}
	}
	if err := b.retire(); err != nil {
		return err
	}
	_, err := b.d.Sweep()
	return err
}

// retire discards the oldest that nothing under way builds upon.
func (b *builder) retire() error {
	for i := 0; i < len(b.done)-1 && len(b.done) > b.retained; {
		id := b.done[i].Metadata.ID
		if slices.ContainsFunc(b.pending, func(p *building) bool { return p.upon == id }) {
			i++
			continue
		}
		location := b.done[i].Location
		b.done = slices.Delete(b.done, i, i+1)
		if err := b.d.Discard(location); err != nil {
			return err
		}
	}
	return nil
}

// giveUp aborts a checkpoint; an upload of it may come late, and be acknowledged or not.
func (b *builder) giveUp(i int) error {
	p := b.pending[i]
	b.pending = slices.Delete(b.pending, i, i+1)
	if err := b.d.Discard(p.location); err != nil || b.rng.IntN(2) == 0 {
		return err
	}
	if _, err := writeShared(b.d.Writer(p.location, smallFiles), "late", fileBody(p.id)); err != nil {
		return err
	}
	if b.rng.IntN(2) == 0 {
		return nil
	}
	return b.d.Discard(p.location)
}

// referred demands that shared/ has the files that are named, and no other. A checkpoint that could not be deleted names them still.
func (b *builder) referred() error {
	all, err := b.completed()
	if err != nil {
		return err
	}
	if !b.failing && len(all) != len(b.done) {
		return fmt.Errorf("%d checkpoints are there, want %d", len(all), len(b.done))
	}
	want := map[string]bool{}
	for _, m := range all {
		for _, h := range filesOf(m) {
			want[path.Base(h.File)] = true
		}
	}
	entries, err := b.healthy.List(path.Join(b.d.dir, sharedName))
	if err != nil {
		return err
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name)
	}
	if names := slices.Sorted(maps.Keys(want)); !slices.Equal(got, names) {
		return fmt.Errorf("in shared/ are %q, but named are %q", got, names)
	}
	return nil
}

// completed is all that is there.
func (b *builder) completed() (all []*snapshot.Metadata, err error) {
	found, err := candidates(b.healthy, b.d.dir)
	for _, c := range found {
		m, err := readMetadata(b.healthy, c.location)
		if err == nil {
			all = append(all, m)
		} else if !errors.Is(err, iofs.ErrNotExist) || errors.Is(err, ErrDamaged) {
			return nil, err
		}
	}
	return all, err
}

// end gives up what is under way and closes.
func (b *builder) end() error {
	for len(b.pending) > 0 {
		if err := b.giveUp(0); err != nil {
			return err
		}
	}
	if b.failing && len(b.done) > 0 {
		if _, err := b.d.Sweep(); err != nil { // as with the next checkpoint
			return err
		}
	}
	if err := b.d.Close(); err != nil {
		return err
	}
	return errors.Join(b.verify(), b.referred())
}

// newBuilder is a life by seed, on a file system or on one with faults above it.
func newBuilder(healthy, fsys FS, seed uint64) *builder {
	rng := rand.New(rand.NewPCG(seed, 5))
	return &builder{fs: fsys, healthy: healthy, rng: rng, retained: 1 + rng.IntN(2)}
}

// goOn checks the run after a crash: everything is there, it completes a checkpoint, and orphans are gone.
func goOn(fsys FS, seed uint64) error {
	b := newBuilder(fsys, fsys, seed)
	if err := b.open(); err != nil {
		return err
	}
	if err := errors.Join(b.begin(), b.complete(0), b.referred()); err != nil {
		return err
	}
	return errors.Join(b.live(10), b.end())
}

func TestEveryCutOfSharedFiles(t *testing.T) {
	for seed := range uint64(3) {
		for n := 1; ; n++ {
			m := Memory()
			b := newBuilder(m, Faulty(m, &Rule{Skip: n, Err: errCut}), seed)
			err := b.open()
			if err == nil {
				err = b.live(12)
			}
			if err == nil {
				err = b.end()
			}
			if err == nil {
				break
			}
			if !errors.Is(err, errCut) {
				t.Fatalf("seed %d, cut after %d operations: %v", seed, n, err)
			}
			for crash := range uint64(3) {
				if err := goOn(m.CrashClone(crashRNG(uint64(n), crash)), seed+crash); err != nil {
					t.Fatalf("seed %d, machine crash %d after %d operations: %v", seed, crash, n, err)
				}
			}
			m.ReleaseLocks()
			if err := goOn(m, seed); err != nil {
				t.Fatalf("seed %d, process death after %d operations: %v", seed, n, err)
			}
		}
	}
}

// Long lives, crashed again and again.
func TestManyCrashesOfSharedFiles(t *testing.T) {
	for seed := range uint64(20) {
		m := Memory()
		rng := rand.New(rand.NewPCG(seed, 6))
		for life := range uint64(15) {
			b := newBuilder(m, Faulty(m, &Rule{Skip: 40 + rng.IntN(400), Err: errCut}), seed*100+life)
			err := b.open()
			if err == nil {
				err = b.live(60)
			}
			if err != nil && !errors.Is(err, errCut) {
				t.Fatalf("seed %d, life %d: %v", seed, life, err)
			}
			m = m.CrashClone(rng)
		}
		if err := goOn(m, seed); err != nil {
			t.Fatalf("seed %d, at the end: %v", seed, err)
		}
	}
}

// A disk that fails now and then costs checkpoints, but no file that is needed, and leaves none that is not.
func TestSharedFilesOnAFailingDisk(t *testing.T) {
	for seed := range uint64(30) {
		m := Memory()
		f := Faulty(m)
		b := newBuilder(m, f, seed)
		b.failing = true
		if err := b.open(); err != nil {
			t.Fatal(err)
		}
		for range 60 {
			f.SetRules(&Rule{Skip: b.rng.IntN(60), Count: 1, Err: errCut})
			err := b.step()
			f.SetRules()
			if err != nil && !errors.Is(err, errCut) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if err == nil {
				continue
			}
			if err := b.recover(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		if err := b.end(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// recover does what a master does after a failure: it asks again for what it wanted published, and gives up what was not written.
func (b *builder) recover() error {
	for i := 0; i < len(b.pending); {
		var err error
		switch p := b.pending[i]; {
		case p.asked:
			err = b.complete(i)
			i = -1
		case p.m == nil:
			err = b.giveUp(i)
			i--
		}
		if err != nil {
			return err
		}
		i++
	}
	return b.verify()
}
