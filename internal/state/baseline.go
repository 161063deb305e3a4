package state

import (
	"slices"
	"sync/atomic"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// baseline is a snapshot that later ones may be written upon: the epochs in which it was taken, and where its pages are. What a
// table has from those epochs or older ones is in the files as it is in memory.
//
// The owner makes it with the snapshot. The goroutine that writes the snapshot out publishes the manifest, once and whole: the owner
// either finds it or takes the baseline for unknown, and then everything is written. That is never wrong, only larger.
type baseline struct {
	id       base.CheckpointID
	epochs   [tables]epoch
	manifest atomic.Pointer[manifest] // nil until the file is stored
}

// baselines are the latest checkpoints, in the order in which they were taken. Which of them were completed the coordinator knows:
// it names the one to build upon, and from then on will name none that is older.
type baselines []*baseline

// baselinesMost bounds them, for whoever neither completes nor aborts checkpoints.
const baselinesMost = 8

// add begins that of a new checkpoint, which is written upon another; nil where it will never be one.
func (b *baselines) add(id, upon base.CheckpointID, epochs [tables]epoch) *baseline {
	if id == 0 {
		return nil
	}
	if i := slices.IndexFunc(*b, func(o *baseline) bool { return o.id != upon }); len(*b) >= baselinesMost {
		*b = slices.Delete(*b, i, i+1)
	}
	added := &baseline{id: id, epochs: epochs}
	*b = append(*b, added)
	return added
}

// upon finds the base of a new checkpoint, and lets those go that will not be named any more; nil: it is not known.
func (b *baselines) upon(id base.CheckpointID) *unchanged {
	if id == 0 {
		return nil
	}
	*b = slices.DeleteFunc(*b, func(o *baseline) bool { return o.id < id })
	for _, o := range *b {
		if m := o.manifest.Load(); o.id == id && m != nil {
			return &unchanged{base: m, since: o.epochs, kept: m.files}
		}
	}
	return nil
}

// forget lets one go.
func (b *baselines) forget(id base.CheckpointID) {
	*b = slices.DeleteFunc(*b, func(o *baseline) bool { return o.id == id })
}

// Forget says that the checkpoint was aborted: it will be the base of none.
func (k *Keyed[K]) Forget(id base.CheckpointID) { k.baselines.forget(id) }

// Refers are, after WriteTo, the files of earlier checkpoints that the new one refers to, in the order in which it numbers them.
func (s *KeyedSnapshot) Refers() (all []snapshot.Handle) {
	for _, f := range s.manifest.files {
		if f.number < s.manifest.number {
			all = append(all, f.handle)
		}
	}
	return all
}

// Written says, after WriteTo and on the same goroutine, where the file is now: a later checkpoint may refer to it. To bytes that
// lie inline in the metadata none does: they are written again, until they are worth a file.
func (s *KeyedSnapshot) Written(h snapshot.Handle) {
	if s.baseline == nil {
		return
	}
	m := s.manifest
	if h.File != "" {
		m.files = append(slices.Clip(m.files), storedFile{m.number, h})
	}
	s.baseline.manifest.Store(m)
}
