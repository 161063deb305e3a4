package rest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/jobmaster"
)

// Job is the running job that a Server serves: a *jobmaster.Master.
type Job interface {
	Status() jobmaster.Status
	TriggerSavepoint(ctx context.Context, s jobmaster.Savepoint) (jobmaster.Answer, error)
	TriggerCheckpoint(ctx context.Context, full bool) (jobmaster.Answer, error)
	Cancel()
}

// Options say what a Server serves, and where.
type Options struct {
	ID    base.JobID
	Graph *graph.Job
	// Config says where the server listens, and is told to who asks for it.
	Config *config.Config
	Job    Job
	// Dispose deletes the savepoint at a path, and is not told the path again in what it returns.
	Dispose func(path string) error
	// Version is Weir's.
	Version string
	Log     *slog.Logger
}

// Server serves one job.
type Server struct {
	options    Options
	listener   net.Listener
	http       *http.Server
	mux        *http.ServeMux
	operations *operations
	began      time.Time
	serving    sync.WaitGroup
}

const (
	// portsTried is how many ports are tried where none is configured.
	portsTried = 100
	// graceMost is how long Close waits for clients to fetch the ends of their operations: a client asks again within a second.
	graceMost = 3 * time.Second
	// answersMost is how long Close waits for answers that are being written.
	answersMost = time.Second
	// headerMost is how long a client may take to say what it wants.
	headerMost = 10 * time.Second
)

// Listen takes the address; nobody is answered before Serve. The error says which address cannot be had, and what to do.
func Listen(o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	l, err := listen(o.Config)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, listener: l, mux: http.NewServeMux(), operations: newOperations(), began: time.Now()}
	s.routes()
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: headerMost, ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug)}
	return s, nil
}

// Serve begins to answer: the job runs, and what it is asked will be answered. On nil it does nothing.
func (s *Server) Serve() {
	if s != nil {
		s.startServe()
	}
}

// startServe starts the goroutine that the server owns; it ends with Close.
func (s *Server) startServe() {
	s.serving.Add(1)
	go s.runServe()
}

// listen takes the configured port, or the first free one.
func listen(c *config.Config) (net.Listener, error) {
	host := c.Get(config.RestBindAddress)
	port, chosen := c.Lookup(config.RestPort)
	for i := 0; ; i++ {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port+i)))
		switch {
		case err == nil:
			return l, nil
		case chosen || !errors.Is(err, syscall.EADDRINUSE):
			return nil, fmt.Errorf("rest: the job cannot serve REST: %w; choose another address or port (%s, %s; port %d: none)", err,
				config.RestBindAddress.Key, config.RestPort.Key, config.RestOff)
		case i == portsTried:
			return net.Listen("tcp", net.JoinHostPort(host, "0"))
		}
	}
}

// URL is where the server is asked.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

func (s *Server) runServe() {
	defer s.serving.Done()
	_ = s.http.Serve(s.listener) // it says that it was closed
}

// Close ends the server, when the job has ended. It waits until those who wait for the end of an operation have heard of it, but not
// for long. It does nothing to a nil Server.
func (s *Server) Close() {
	if s == nil {
		return
	}
	s.operations.settle(graceMost)
	ctx, cancel := context.WithTimeout(context.Background(), answersMost)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close() // whoever still writes is cut off
	}
	_ = s.listener.Close() // where Serve was never called; else it is closed already
	s.operations.settle(0) // those that were begun meanwhile
	s.serving.Wait()
}
