package cluster

import (
	"fmt"
	"runtime/debug"
	"testing"

	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/rest"
	"github.com/weirstream/weir/internal/storage"
)

// modulePath is Weir's among the modules that a program is built of.
const modulePath = "github.com/weirstream/weir"

// listen takes the address of REST, and says which; nil: the job serves none. In a test binary, which runs many jobs and has nobody who asks,
// a job serves only where a port was set.
func (r *running) listen() (*rest.Server, error) {
	port, set := r.job.Config.Lookup(config.RestPort)
	if port == config.RestOff || !set && testing.Testing() {
		return nil, nil
	}
	s, err := rest.Listen(rest.Options{ID: r.id, Graph: r.job.Graph, Config: r.job.Config, Job: r.master, Dispose: r.dispose, Version: moduleVersion(),
		Log: r.job.Log})
	if err != nil {
		return nil, err
	}
	r.job.Log.Info(fmt.Sprintf("Rest endpoint of job %s listening at %s", r.id, s.URL()))
	return s, nil
}

// dispose deletes a savepoint for who asks for it over REST.
func (r *running) dispose(path string) error {
	left, err := storage.Dispose(r.job.FS, path)
	if len(left) > 0 {
		r.job.Log.Warn("A savepoint was disposed of; its directory holds files that are none of its own, and stays.", "path", path, "left", left)
	}
	return err
}

// moduleVersion is Weir's version in this program.
func moduleVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == modulePath && m.Version != "" {
			return m.Version
		}
	}
	return "(unknown)"
}
