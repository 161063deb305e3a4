package cluster

import (
	"errors"
	"log/slog"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/fit"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/storage"
)

// looksMost is how often a running job's directory is looked at before what is seen is believed: between two looks a checkpoint
// may have made place for the next.
const looksMost = 5

// Check says whether the snapshot that the job would start from fits it, by what a start itself asks. It locks nothing, and changes
// nothing: the job may be running. The report is nil where there is no snapshot, and the job would start empty.
func Check(j Job) (*fit.Report, error) {
	j = j.withDefaults()
	j.Log = slog.New(slog.DiscardHandler)
	wanted, _ := j.Config.Lookup(config.SavepointPath)
	named := wanted != config.Latest && wanted != config.LatestOrStart
	from, err := look(j)
	for again := 1; again < looksMost && err != nil && !named && !errors.Is(err, storage.ErrNone); again++ {
		from, err = look(j)
	}
	if err != nil || len(from.points) == 0 {
		return nil, err
	}
	return judge(j, from.points[len(from.points)-1]), nil
}

// CheckPath is Check for the savepoint or checkpoint at a path, whatever the job would start from.
func CheckPath(j Job, path string) (*fit.Report, error) {
	j = j.withDefaults()
	m, location, err := storage.ReadMetadata(j.FS, path)
	if err != nil {
		return nil, err
	}
	return judge(j, jobmaster.Point{Metadata: m, Location: location}), nil
}

func judge(j Job, p jobmaster.Point) *fit.Report {
	report := fit.Check(p.Metadata, jobmaster.Program(j.Graph, j.Hooks), j.Config.Get(config.AllowNonRestored))
	report.Snapshot.Location = p.Location
	return report
}

// look finds what the job would start from.
func look(j Job) (startPoint, error) {
	past, err := lookAtStore(j, j.id())
	if err != nil {
		return startPoint{}, err
	}
	return restorePoints(j.FS, past, j.id(), j.Config, j.Log)
}

// lookAtStore is what the job has left where it keeps its checkpoints.
func lookAtStore(j Job, id base.JobID) (storage.Past, error) {
	if j.Config.Storage() == config.JobManagerStorage {
		return storage.OpenJobMemory(j.FS, id, 0), nil
	}
	return storage.LookAtJobDir(j.FS, j.Config.Get(config.CheckpointDir), id)
}
