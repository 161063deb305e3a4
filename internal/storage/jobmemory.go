package storage

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// JobMemory keeps checkpoints in the memory of the job master, all state inline; it implements Checkpoints. They are gone with
// the master. Savepoints still go to files.
type JobMemory struct {
	fs       FS
	job      base.JobID
	stateMax int64

	mu        sync.Mutex // protects what follows
	largest   base.CheckpointID
	end       string
	locations map[string]bool // made and not discarded
	claimed   string          // the location of what was claimed; "": nothing was
	completed map[base.CheckpointID]stored
}

// stored is a completed checkpoint, or a pointer to a savepoint.
type stored struct {
	location string
	metadata []byte // of a checkpoint; a savepoint's is read where it lies
}

// memoryScheme begins the locations of checkpoints in memory.
const memoryScheme = "memory:"

func isMemory(location string) bool { return strings.HasPrefix(location, memoryScheme) }

// OpenJobMemory is empty storage for a job. A state may have stateMax bytes; 0 is DefaultMemoryMax.
func OpenJobMemory(fsys FS, job base.JobID, stateMax int64) *JobMemory {
	return &JobMemory{
		fs: fsys, job: job, stateMax: stateMax,
		locations: map[string]bool{}, completed: map[base.CheckpointID]stored{},
	}
}

// Run implements Checkpoints: with the memory the job is gone too, so there is one run.
func (j *JobMemory) Run() int64 { return 1 }

// Fresh implements Checkpoints.
func (j *JobMemory) Fresh() bool { return true }

// LargestID implements Checkpoints.
func (j *JobMemory) LargestID() base.CheckpointID {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.largest
}

// EndState implements Checkpoints.
func (j *JobMemory) EndState() (state string, run int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.end == "" {
		return "", 0
	}
	return j.end, j.Run()
}

// SetEndState implements Checkpoints.
func (j *JobMemory) SetEndState(state string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.end = state
	return nil
}

// CreateLocation implements Checkpoints.
func (j *JobMemory) CreateLocation(id base.CheckpointID, kind snapshot.Kind, target string) (string, error) {
	if err := j.reserve(id); err != nil {
		return "", err
	}
	if kind.IsSavepoint() {
		return createSavepoint(j.fs, target, j.job)
	}
	location := fmt.Sprintf("%s%s%d", memoryScheme, chkPrefix, id)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.locations[location] = true
	return location, nil
}

func (j *JobMemory) reserve(id base.CheckpointID) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if id <= j.largest {
		return usedBefore(id, j.largest)
	}
	j.largest = id
	return nil
}

func usedBefore(id, largest base.CheckpointID) error {
	return fmt.Errorf("storage: the checkpoint id %d was used before: the largest one is %d", id, largest)
}

// Writer implements Checkpoints.
func (j *JobMemory) Writer(location string, o WriterOptions) Writer {
	if o.MemoryMax == 0 {
		o.MemoryMax = j.stateMax
	}
	return NewWriter(j.fs, location, o)
}

// Open implements Checkpoints.
func (j *JobMemory) Open(location string, h snapshot.Handle) (Reader, error) {
	return OpenHandle(j.fs, location, h)
}

// Publish implements Checkpoints.
func (j *JobMemory) Publish(location string, m *snapshot.Metadata) (int64, error) {
	if m.Job != j.job {
		return 0, foreign(m, j.job)
	}
	if !isMemory(location) {
		return publish(j.fs, location, m)
	}
	if err := m.Validate(); err != nil {
		return 0, fmt.Errorf("storage: publishing checkpoint %d: %w", m.ID, err)
	}
	b := m.Encode()
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.locations[location] {
		return 0, fmt.Errorf("storage: publishing checkpoint %d: %s was discarded or never made", m.ID, location)
	}
	j.completed[m.ID] = stored{location: location, metadata: b}
	return int64(len(b)), nil
}

func foreign(m *snapshot.Metadata, job base.JobID) error {
	return fmt.Errorf("storage: checkpoint %d of job %s cannot be published by job %s", m.ID, m.Job, job)
}

// PointSavepoint implements Checkpoints.
func (j *JobMemory) PointSavepoint(id base.CheckpointID, location string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.completed[id] = stored{location: location}
	return nil
}

// StartFrom implements Checkpoints.
func (j *JobMemory) StartFrom(m *snapshot.Metadata, location string, claim bool) error {
	if claim {
		if err := claimSnapshot(j.fs, location, claimant{job: j.job}); err != nil {
			return err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.largest = max(j.largest, m.ID)
	j.completed = map[base.CheckpointID]stored{m.ID: {location: location}}
	j.claimed = ""
	if claim {
		j.claimed = location
	}
	return nil
}

// Owns implements Checkpoints.
func (j *JobMemory) Owns(location string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return isMemory(location) || location != "" && location == j.claimed
}

// Within implements Checkpoints.
func (j *JobMemory) Within(location string) bool { return isMemory(location) }

// Discard implements Checkpoints.
func (j *JobMemory) Discard(location string) error {
	owned := j.Owns(location)
	j.forget(location)
	switch {
	case isMemory(location):
		return nil
	case owned:
		_, err := removeSnapshot(j.fs, location, releaseForeign)
		return err
	}
	return discard(j.fs, location)
}

func (j *JobMemory) forget(location string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.locations, location)
	maps.DeleteFunc(j.completed, func(_ base.CheckpointID, s stored) bool { return s.location == location })
}

// Latest implements Checkpoints.
func (j *JobMemory) Latest() (*snapshot.Metadata, string, error) {
	all := j.ascending()
	if len(all) == 0 {
		return nil, "", fmt.Errorf("storage: %w: the checkpoints of job %s lie in its master's memory, and this one has taken none", ErrNone, j.job)
	}
	m, err := j.read(all[len(all)-1])
	return m, all[len(all)-1].location, err
}

// Completed implements Checkpoints.
func (j *JobMemory) Completed() (all []Completed, err error) {
	for _, s := range j.ascending() {
		m, err := j.read(s)
		if err != nil {
			return nil, err
		}
		all = append(all, Completed{Metadata: m, Location: s.location})
	}
	return all, nil
}

func (j *JobMemory) ascending() (all []stored) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(j.completed)) {
		all = append(all, j.completed[id])
	}
	return all
}

func (j *JobMemory) read(s stored) (*snapshot.Metadata, error) {
	if s.metadata == nil {
		return readMetadata(j.fs, s.location)
	}
	return snapshot.Decode(s.metadata)
}

// OpenPages implements Checkpoints.
func (j *JobMemory) OpenPages(location string, h snapshot.Handle) (Reader, error) {
	return OpenPages(j.fs, location, h)
}

// Sweep implements Checkpoints: no run came before.
func (j *JobMemory) Sweep() ([]string, error) { return nil, nil }

// Close implements Checkpoints.
func (j *JobMemory) Close() error { return nil }
