package storage

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirstream/weir/internal/base"
)

// Random histories of checkpoints that complete, fail and are given up, several at a time, against a model that knows of each checkpoint
// which files it names and asks all of them.
func TestRegistryCountsAsTheModel(t *testing.T) {
	for seed := range uint64(50) {
		w := &registryWorld{rng: rand.New(rand.NewPCG(seed, 1)), r: newRegistry(), names: map[string][]string{}, unread: map[string]base.CheckpointID{}}
		for range 150 {
			if err := w.step(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
}

// registryWorld is a registry, and what it should say.
type registryWorld struct {
	rng    *rand.Rand
	r      *registry
	last   base.CheckpointID
	names  map[string][]string // by location of what is completed
	unread map[string]base.CheckpointID
	files  []string // all that ever were
}

func (w *registryWorld) step() error {
	switch w.rng.IntN(8) {
	case 0, 1, 2:
		w.complete()
	case 3:
		if len(w.names) > 0 {
			w.r.add(w.anyCompleted(), w.some(w.files)) // doubled: the first counts
		}
	case 4:
		w.last++
		location := fmt.Sprint("chk-", w.last)
		w.unread[location] = w.last
		w.r.addUnread(location, w.last)
	default:
		if err := w.drop(w.anyLocation()); err != nil {
			return err
		}
	}
	return w.check()
}

// complete completes a checkpoint upon one that is completed, with a file of its own, or upon none. Names may come twice.
func (w *registryWorld) complete() {
	w.last++
	own := sharedFileName(w.last, "counts")
	w.files = append(w.files, own)
	files := []string{own, own}
	if len(w.names) > 0 && w.rng.IntN(5) > 0 {
		files = append(files, w.some(w.names[w.anyCompleted()])...)
	}
	location := fmt.Sprint("chk-", w.last)
	w.names[location] = files
	w.r.add(location, files)
}

func (w *registryWorld) anyCompleted() string {
	return slices.Sorted(maps.Keys(w.names))[w.rng.IntN(len(w.names))]
}

// anyLocation is one that is completed, or cannot be read, or that nobody knows.
func (w *registryWorld) anyLocation() string {
	all := append(slices.Sorted(maps.Keys(w.names)), slices.Sorted(maps.Keys(w.unread))...)
	if len(all) == 0 {
		return "nowhere"
	}
	return all[w.rng.IntN(len(all))]
}

func (w *registryWorld) some(files []string) (some []string) {
	for _, f := range files {
		if w.rng.IntN(3) > 0 {
			some = append(some, f)
		}
	}
	return some
}

// drop demands that exactly those files come back that the checkpoint named and that are free now.
func (w *registryWorld) drop(location string) error {
	files := slices.Compact(slices.Sorted(slices.Values(w.names[location])))
	delete(w.names, location)
	delete(w.unread, location)
	got := w.r.drop(location)
	want := slices.DeleteFunc(files, func(f string) bool { return !w.free(f) })
	if !slices.Equal(got, want) {
		return fmt.Errorf("dropping %s frees %q, want %q", location, got, want)
	}
	return nil
}

// free is what the model says: nobody names the file, nor may name it.
func (w *registryWorld) free(file string) bool {
	for _, files := range w.names {
		if slices.Contains(files, file) {
			return false
		}
	}
	id, _ := sharedID(file)
	for _, u := range w.unread {
		if id <= u {
			return false
		}
	}
	return true
}

func (w *registryWorld) check() error {
	for _, f := range w.files {
		if got := w.r.isFree(f); got != w.free(f) {
			return fmt.Errorf("%s is free: %v", f, got)
		}
	}
	if len(w.names) == 0 && len(w.r.count) > 0 {
		return fmt.Errorf("nothing is completed, but %v is counted", w.r.count)
	}
	return nil
}

// What is not called as a shared file is called is nobody's to delete.
func TestSharedNames(t *testing.T) {
	for name, want := range map[string]base.CheckpointID{
		sharedFileName(7, "op/0 keyed"): 7, "12-x": 12, "12-": 12, "7": 0, "-7-x": 0, "07-x": 0, "0-x": 0, "+7-x": 0, "notes.txt": 0, "a-7": 0,
		"99999999999999999999-x": 0,
	} {
		id, ok := sharedID(name)
		if ok != (want > 0) || ok && id != want {
			t.Errorf("%q is of checkpoint %d, %v; want %d", name, id, ok, want)
		}
		if r := newRegistry(); r.isFree(name) != ok {
			t.Errorf("%q is free: %v", name, !ok)
		}
	}
}
