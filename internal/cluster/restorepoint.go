package cluster

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

// startPoint is what a job goes on from.
type startPoint struct {
	// points are completed checkpoints, ascending by id; the last one is restored. None: the job starts empty.
	points []jobmaster.Point
	// named: the last one was named by its path, so it takes the place of what the job had before.
	named bool
}

// restorePoints decides what the job goes on from, and changes nothing.
//
//	-s                what is restored                              where there is none
//	(nothing)         nothing                                       -
//	latest            the newest checkpoint or terminal savepoint   an error that lists what is there
//	latest-or-start   the same                                      an empty start, if the job never completed one, nor FINISHED; else an error
//	a path            what lies there                               an error
//
// The latest is also the latest after a start from a path: until the first checkpoint after it, that is what lies at the path.
func restorePoints(fs storage.FS, s storage.Past, id base.JobID, c *config.Config, log *slog.Logger) (r startPoint, err error) {
	wanted, set := c.Lookup(config.SavepointPath)
	if !set {
		return r, warnOfLeft(s, log)
	}
	switch wanted {
	case config.Latest, config.LatestOrStart:
		r.points, err = latest(s, id, wanted)
	default:
		r, err = named(fs, id, wanted, c.Get(config.RestoreClaim) == config.Claim, log)
	}
	if err != nil || len(r.points) == 0 {
		return startPoint{}, err
	}
	warnOfDrained(r.points[len(r.points)-1], log)
	return r, nil
}

// record makes a start from a path durable, once everything else about it is decided, and before anything runs: a crash must not make
// the latest again what the user has left behind.
func (r startPoint) record(s storage.Checkpoints, id base.JobID, c *config.Config, log *slog.Logger) error {
	if !r.named {
		return nil
	}
	p := r.points[0]
	if err := s.StartFrom(p.Metadata, p.Location, !p.Keep); err != nil {
		return fmt.Errorf("cluster: starting from %s: %w", p.Location, err)
	}
	how := string(c.Get(config.RestoreClaim))
	if c.Get(config.AllowNonRestored) {
		how += ", allowing non restored state"
	}
	log.Info(fmt.Sprintf("Starting job %s from savepoint %s (%s)", id, p.Location, how))
	log.Info(fmt.Sprintf("Reset the checkpoint ID of job %s to %d.", id, s.LargestID()+1))
	return nil
}

// latest are all completed checkpoints of the job.
func latest(s storage.Past, id base.JobID, wanted string) ([]jobmaster.Point, error) {
	newest, location, err := s.Latest()
	switch {
	case errors.Is(err, storage.ErrNone) && wanted == config.LatestOrStart && s.Fresh() && !finished(s):
		return nil, nil
	case errors.Is(err, storage.ErrNone):
		return nil, noLatest(s, id, wanted, err)
	case err != nil:
		return nil, err
	}
	points, err := older(s, location)
	if err != nil {
		return nil, err
	}
	return append(points, jobmaster.Point{Metadata: newest, Location: location, Keep: !s.Owns(location)}), nil
}

// finished is true where the last run that ended had processed everything.
func finished(s storage.Past) bool {
	state, _ := s.EndState()
	return state == job.Finished.String()
}

// noLatest says why there is nothing to go on from, and what to do.
func noLatest(s storage.Past, id base.JobID, wanted string, none error) error {
	if finished(s) {
		_, run := s.EndState()
		return fmt.Errorf("cluster: -s %s: job %s has FINISHED in its run %d: all its data was processed, and its checkpoints were deleted "+
			"with it. To process data again, start it without -s: %w", wanted, id, run, none)
	}
	if wanted == config.LatestOrStart {
		return fmt.Errorf("cluster: -s %s starts empty only a job that never completed a checkpoint, nor FINISHED; job %s did, and there is nothing left to "+
			"go on from. To start it empty all the same, leave -s out: %w", wanted, id, none)
	}
	return fmt.Errorf("cluster: -s %s: job %s has nothing to go on from. To start it empty, leave -s out, or use -s %s for its first run: %w",
		wanted, id, config.LatestOrStart, none)
}

// older are the job's completed checkpoints but for the newest: retention goes on with them.
func older(s storage.Past, newest string) ([]jobmaster.Point, error) {
	all, err := s.Completed()
	if err != nil {
		return nil, err
	}
	var points []jobmaster.Point
	for _, c := range all {
		if c.Location != newest {
			points = append(points, jobmaster.Point{Metadata: c.Metadata, Location: c.Location, Keep: !s.Owns(c.Location)})
		}
	}
	return points, nil
}

// named is the checkpoint or savepoint at a path. Its files stay its owner's, unless it is claimed.
func named(fs storage.FS, id base.JobID, path string, claim bool, log *slog.Logger) (startPoint, error) {
	m, location, err := storage.ReadMetadata(fs, path)
	if err != nil {
		return startPoint{}, fmt.Errorf("cluster: -s %s: %w", path, err)
	}
	if !claim {
		warnOfOwner(fs, id, location, log)
	}
	return startPoint{named: true, points: []jobmaster.Point{{Metadata: m, Location: location, Keep: !claim}}}, nil
}

// warnOfOwner tells who starts from another job's snapshot that it may go.
func warnOfOwner(fs storage.FS, id base.JobID, location string, log *slog.Logger) {
	owner, err := storage.OwnerOf(fs, location)
	switch {
	case err != nil:
		log.Warn("Nobody can say whose the snapshot is that the job starts from.", "location", location, "error", err)
	case owner != "" && owner != id:
		log.Warn("The snapshot that the job starts from belongs to another job, which may delete it at any time. A savepoint is nobody's but yours.",
			"location", location, "owner", string(owner))
	}
}

// warnOfDrained tells who restores an ended job that it is one.
func warnOfDrained(p jobmaster.Point, log *slog.Logger) {
	if p.Metadata.Kind == snapshot.Drain {
		log.Warn("The job starts from a savepoint that was taken when it had been drained, which is its end: what is left to commit is "+
			"committed, and the job is FINISHED.", "location", p.Location)
	}
}

// warnOfLeft tells who starts a job empty that there is something to go on from.
func warnOfLeft(s storage.Past, log *slog.Logger) error {
	all, err := s.Completed()
	if err != nil {
		return err
	}
	if len(all) > 0 {
		log.Warn("The job starts empty, but an earlier run of it has left checkpoints. To go on from the newest instead: -s latest",
			"newest", all[len(all)-1].Location)
	}
	return nil
}
