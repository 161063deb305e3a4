package cluster

import (
	"context"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/rest"
	"github.com/weirstream/weir/internal/storage"
)

// urls passes on where a log says that REST is served.
type urls chan string

var endpoint = regexp.MustCompile(`listening at (http://[0-9.:]+)`)

func (u urls) Write(line []byte) (int, error) {
	if at := endpoint.FindSubmatch(line); at != nil {
		u <- string(at[1])
	}
	return len(line), nil
}

// served is an endless job that serves REST at a port; and where it does.
func served(t *testing.T, fs storage.FS, port int) (Job, urls) {
	t.Helper()
	p, u := &program{ledger: newLedger(), endless: true}, make(urls, 1)
	var l config.Layer
	l.Set(config.CheckpointInterval.Key, 20*time.Millisecond, "test")
	l.Set(config.RestPort.Key, port, "test")
	j := p.job(t, fs)
	var err error
	if j.Config, err = config.Build(l); err != nil {
		t.Fatal(err)
	}
	j.Log = slog.New(slog.NewTextHandler(u, nil))
	return j, u
}

// A job that is stopped over REST tells whoever stopped it where its savepoint lies, though it ends with it; then nothing of it is left, at
// that address neither.
func TestStoppedOverREST(t *testing.T) {
	j, at := served(t, storage.Memory(), 0)
	type stopped struct {
		location string
		err      error
	}
	heard := make(chan stopped, 1)
	var url string
	go func() {
		url = <-at
		c, err := rest.NewClient(url)
		var id, location string
		for again := err == nil; again; again = err != nil && strings.Contains(err.Error(), "Not all required tasks are currently running") {
			id, err = c.TriggerStop(t.Context(), string(j.id()), rest.SavepointOrder{Target: "/sp"})
			if err == nil {
				location, err = c.AwaitSavepoint(t.Context(), string(j.id()), id)
			}
		}
		heard <- stopped{location, err}
	}()
	r, err := Run(t.Context(), j)
	if s := <-heard; err != nil || s.err != nil || s.location != "file:"+r.Savepoint {
		t.Errorf("who stopped it hears of %q, %v; it ends with %+v, %v", s.location, s.err, r, err)
	}
	if c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
		c.Close()
		t.Error("the address still answers")
	}
}

// A port that is taken is said before anything runs.
func TestPortIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	j, _ := served(t, storage.Memory(), l.Addr().(*net.TCPAddr).Port)
	j.Started = func(*Handle) { t.Error("it runs") }
	if _, err := Run(t.Context(), j); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("%v", err)
	}
}

// In a test binary a job that is not told to serves nothing.
func TestTestsServeNothing(t *testing.T) {
	p, u := &program{ledger: newLedger(), endless: true}, make(urls, 1)
	ctx, cancel := context.WithCancel(t.Context())
	j := p.job(t, storage.Memory())
	j.Log, j.Started = slog.New(slog.NewTextHandler(u, nil)), func(*Handle) { cancel() }
	_, _ = Run(ctx, j)
	if len(u) > 0 {
		t.Errorf("it serves at %s", <-u)
	}
}
