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

// restorePoints are the checkpoints that the job goes on from, ascending by id; the last one is restored. None: it starts
// empty.
//
//	-s                what is restored                              where there is none
//	(nothing)         nothing                                       -
//	latest            the newest checkpoint or terminal savepoint   an error that lists what is there
//	latest-or-start   the same                                      an empty start, if the job never completed one, nor FINISHED; else an error
//	a path            what lies there                               an error
func restorePoints(fs storage.FS, s storage.Checkpoints, id base.JobID, c *config.Config, log *slog.Logger) ([]jobmaster.Point, error) {
	wanted, set := c.Lookup(config.SavepointPath)
	if !set {
		return nil, warnOfLeft(s, log)
	}
	var points []jobmaster.Point
	var err error
	switch wanted {
	case config.Latest, config.LatestOrStart:
		points, err = latest(s, id, wanted)
	default:
		points, err = named(fs, s, wanted)
	}
	if err != nil || len(points) == 0 {
		return nil, err
	}
	warnOfDrained(points[len(points)-1], log)
	return points, nil
}

// latest are all completed checkpoints of the job.
func latest(s storage.Checkpoints, id base.JobID, wanted string) ([]jobmaster.Point, error) {
	newest, location, err := s.Latest()
	switch {
	case errors.Is(err, storage.ErrNone) && wanted == config.LatestOrStart && s.Fresh() && !finished(s):
		return nil, nil
	case errors.Is(err, storage.ErrNone):
		return nil, noLatest(s, id, wanted, err)
	case err != nil:
		return nil, err
	}
	points, err := older(s, newest.ID)
	if err != nil {
		return nil, err
	}
	return append(points, jobmaster.Point{Metadata: newest, Location: location, Keep: newest.Kind.IsSavepoint()}), nil
}

// finished is true where the last run that ended had processed everything.
func finished(s storage.Checkpoints) bool {
	state, _ := s.EndState()
	return state == job.Finished.String()
}

// noLatest says why there is nothing to go on from, and what to do.
func noLatest(s storage.Checkpoints, id base.JobID, wanted string, none error) error {
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

// older are the job's completed checkpoints below an id: retention goes on with them.
func older(s storage.Checkpoints, id base.CheckpointID) ([]jobmaster.Point, error) {
	all, err := s.Completed()
	if err != nil {
		return nil, err
	}
	var points []jobmaster.Point
	for _, c := range all {
		if c.Metadata.ID < id {
			points = append(points, jobmaster.Point{Metadata: c.Metadata, Location: c.Location, Keep: c.Metadata.Kind.IsSavepoint()})
		}
	}
	return points, nil
}

// named is the checkpoint or savepoint at a path. Its files stay its owner's.
func named(fs storage.FS, s storage.Checkpoints, path string) ([]jobmaster.Point, error) {
	m, location, err := storage.ReadMetadata(fs, path)
	if err != nil {
		return nil, fmt.Errorf("cluster: -s %s: %w", path, err)
	}
	points, err := older(s, m.ID)
	if err != nil {
		return nil, err
	}
	return append(points, jobmaster.Point{Metadata: m, Location: location, Keep: true}), nil
}

// warnOfDrained tells who restores an ended job that it is one.
func warnOfDrained(p jobmaster.Point, log *slog.Logger) {
	if p.Metadata.Kind == snapshot.Drain {
		log.Warn("The job starts from a savepoint that was taken when it had been drained, which is its end: what is left to commit is "+
			"committed, and the job is FINISHED.", "location", p.Location)
	}
}

// warnOfLeft tells who starts a job empty that there is something to go on from.
func warnOfLeft(s storage.Checkpoints, log *slog.Logger) error {
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
