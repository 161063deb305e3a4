package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/jobmaster"
)

// savepointRequest is the body of POST /jobs/:jobid/savepoints.
type savepointRequest struct {
	Target  *string `json:"target-directory"`
	Cancel  bool    `json:"cancel-job"`
	Format  *format `json:"formatType"`
	Trigger *hexID  `json:"triggerId"`
}

// stopRequest is the body of POST /jobs/:jobid/stop, which Flink spells otherwise.
type stopRequest struct {
	Target  *string `json:"targetDirectory"`
	Drain   bool    `json:"drain"`
	Format  *format `json:"formatType"`
	Trigger *hexID  `json:"triggerId"`
}

// checkpointRequest is the body of POST /jobs/:jobid/checkpoints.
type checkpointRequest struct {
	Type    *string `json:"checkpointType"`
	Trigger *hexID  `json:"triggerId"`
}

// disposalRequest is the body of POST /savepoint-disposal.
type disposalRequest struct {
	Path *string `json:"savepoint-path"`
}

// triggered is the answer to them all.
type triggered struct {
	ID string `json:"request-id"`
}

// progress is the answer to who asks how an operation stands.
type progress struct {
	Status    progressStatus `json:"status"`
	Operation any            `json:"operation"`
}

type progressStatus struct {
	ID string `json:"id"`
}

const (
	inProgress = "IN_PROGRESS"
	completed  = "COMPLETED"
)

// How operations end. Flink calls the cause of a checkpoint's failure otherwise than that of the others.
type (
	savepointEnd struct {
		Location string   `json:"location,omitempty"`
		Failure  *failure `json:"failure-cause,omitempty"`
	}
	checkpointEnd struct {
		ID      base.CheckpointID `json:"checkpointId,omitempty"`
		Failure *failure          `json:"failureCause,omitempty"`
	}
	disposalEnd struct {
		Failure *failure `json:"failure-cause,omitempty"`
	}
)

// format is CANONICAL or NATIVE.
type format checkpoint.Format

// MarshalText implements encoding.TextMarshaler.
func (f format) MarshalText() ([]byte, error) { return []byte(checkpoint.Format(f).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *format) UnmarshalText(text []byte) error {
	for _, known := range []checkpoint.Format{checkpoint.Canonical, checkpoint.Native} {
		if string(text) == known.String() {
			*f = format(known)
			return nil
		}
	}
	return fmt.Errorf("rest: unknown format %q", text)
}

// or is the format that was asked for, or the one that is taken where none was.
func (f *format) or(other checkpoint.Format) checkpoint.Format {
	if f == nil {
		return other
	}
	return checkpoint.Format(*f)
}

// hexID is an id of 32 hexadecimal digits.
type hexID string

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *hexID) UnmarshalText(text []byte) error {
	*id = hexID(strings.ToLower(string(text)))
	if !isHex(string(*id)) {
		return fmt.Errorf("rest: %q is no id", text)
	}
	return nil
}

// orNew is the id that was brought, or a new one.
func (id *hexID) orNew() string {
	if id == nil {
		return newTrigger()
	}
	return string(*id)
}

// bodyMost bounds what is read of a request.
const bodyMost = 1 << 20

// decode reads the body of a request; none is {}. Unknown fields are ignored, as in Flink. Class is Flink's name of the body.
func decode(r *http.Request, class string, into any) error {
	b, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, bodyMost))
	if err == nil && len(b) > 0 {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		return badRequest("Request did not match expected format %s.", class)
	}
	return nil
}

func (s *Server) operationRoutes() {
	s.handle("POST /jobs/{jobid}/savepoints", s.triggerSavepoint)
	s.handle("POST /jobs/{jobid}/stop", s.triggerStop)
	s.handle("GET /jobs/{jobid}/savepoints/{triggerid}", s.progressOf(savepointOperation))
	s.handle("POST /jobs/{jobid}/checkpoints", s.triggerCheckpoint)
	s.handle("GET /jobs/{jobid}/checkpoints/{triggerid}", s.progressOf(checkpointOperation))
	s.handle("POST /savepoint-disposal", s.triggerDisposal)
	s.handle("GET /savepoint-disposal/{triggerid}", s.progressOf(disposalOperation))
	s.handle("PATCH /jobs/{jobid}", s.cancel)
}

func (s *Server) triggerSavepoint(r *http.Request) (any, error) {
	var q savepointRequest
	id, err := hexOf(r, "jobid")
	if err == nil {
		err = decode(r, "SavepointTriggerRequestBody", &q)
	}
	if err == nil {
		err = s.checkTarget(q.Target, "target-directory")
	}
	if err != nil {
		return nil, err
	}
	return s.save(id, q.Trigger.orNew(), jobmaster.Savepoint{Kind: checkpoint.Savepoint, Format: q.Format.or(checkpoint.Canonical), Target: text(q.Target),
		Cancel: q.Cancel}), nil
}

func (s *Server) triggerStop(r *http.Request) (any, error) {
	var q stopRequest
	id, err := hexOf(r, "jobid")
	if err == nil {
		err = decode(r, "StopWithSavepointRequestBody", &q)
	}
	if err == nil {
		err = s.checkTarget(q.Target, "targetDirectory")
	}
	if err != nil {
		return nil, err
	}
	kind := checkpoint.Suspend
	if q.Drain {
		kind = checkpoint.Drain
	}
	return s.save(id, q.Trigger.orNew(), jobmaster.Savepoint{Kind: kind, Format: q.Format.or(checkpoint.Canonical), Target: text(q.Target)}), nil
}

// checkTarget refuses a savepoint for which there is no directory. Flink does so before it looks for the job.
func (s *Server) checkTarget(target *string, field string) error {
	if text(target) == "" && s.options.Config.Get(config.SavepointDir) == "" {
		return badRequest("Config key [%s] is not set. Property [%s] must be provided.", config.SavepointDir.Key, field)
	}
	return nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// save begins a savepoint.
func (s *Server) save(id, trigger string, q jobmaster.Savepoint) any {
	s.operations.begin(operationKey{savepointOperation, id, trigger}, func() any {
		a, err := jobmaster.Answer{}, s.missing(id)
		if err == nil {
			a, err = s.options.Job.TriggerSavepoint(context.Background(), q)
		}
		if err != nil {
			return savepointEnd{Failure: failureOf(err)}
		}
		return savepointEnd{Location: uri(a.Location)}
	})
	return reply{http.StatusAccepted, triggered{trigger}}
}

// missing is the failure of an operation on a job that is not here: Flink looks for it late.
func (s *Server) missing(id string) error {
	if id == string(s.options.ID) {
		return nil
	}
	return &fault{class: "org.apache.flink.runtime.messages.FlinkJobNotFoundException", text: fmt.Sprintf("Could not find Flink job (%s)", id)}
}

// uri is a location with its scheme.
func uri(location string) string {
	if strings.HasPrefix(location, "/") {
		return "file:" + location
	}
	return location
}

func (s *Server) triggerCheckpoint(r *http.Request) (any, error) {
	var q checkpointRequest
	id, err := hexOf(r, "jobid")
	if err == nil {
		err = decode(r, "CheckpointTriggerRequestBody", &q)
	}
	if err != nil {
		return nil, err
	}
	full := text(q.Type) == "FULL"
	switch text(q.Type) {
	case "", "CONFIGURED", "FULL":
	case "INCREMENTAL":
		return nil, &fault{status: http.StatusInternalServerError, class: "java.lang.UnsupportedOperationException",
			text: "A checkpoint is as the state backend makes it, CONFIGURED, or FULL."}
	default:
		return nil, badRequest("Request did not match expected format %s.", "CheckpointTriggerRequestBody")
	}
	trigger := q.Trigger.orNew()
	s.operations.begin(operationKey{checkpointOperation, id, trigger}, func() any {
		a, err := jobmaster.Answer{}, s.missing(id)
		if err == nil {
			a, err = s.options.Job.TriggerCheckpoint(context.Background(), full)
		}
		if err != nil {
			return checkpointEnd{Failure: failureOf(err)}
		}
		return checkpointEnd{ID: a.ID}
	})
	return reply{http.StatusAccepted, triggered{trigger}}, nil
}

func (s *Server) triggerDisposal(r *http.Request) (any, error) {
	var q disposalRequest
	if err := decode(r, "SavepointDisposalRequest", &q); err != nil {
		return nil, err
	}
	if text(q.Path) == "" {
		return nil, badRequest("Field savepoint-path must not be omitted or be null.")
	}
	trigger := newTrigger()
	s.operations.begin(operationKey{kind: disposalOperation, trigger: trigger}, func() any {
		if err := s.options.Dispose(*q.Path); err != nil {
			return disposalEnd{Failure: failureOf(err)}
		}
		return disposalEnd{}
	})
	return triggered{trigger}, nil
}

// progressOf answers how operations of a kind stand.
func (s *Server) progressOf(kind operationKind) handler {
	return func(r *http.Request) (any, error) {
		key := operationKey{kind: kind}
		var err error
		if kind != disposalOperation {
			key.job, err = hexOf(r, "jobid")
		}
		if err == nil {
			key.trigger, err = hexOf(r, "triggerid")
		}
		if err != nil {
			return nil, err
		}
		end, known := s.operations.look(key)
		switch {
		case !known && kind == disposalOperation:
			return nil, notFound("Operation not found under key: %s", key.trigger)
		case !known:
			return nil, notFound("There is no %s operation with triggerId=%s for job %s.", kind, key.trigger, key.job)
		case end == nil:
			return progress{Status: progressStatus{inProgress}}, nil
		}
		return progress{Status: progressStatus{completed}, Operation: end}, nil
	}
}

// cancel cancels the job. That of a job that is canceled already succeeds.
func (s *Server) cancel(r *http.Request) (any, error) {
	id, err := hexOf(r, "jobid")
	if err != nil {
		return nil, err
	}
	switch mode := r.URL.Query().Get("mode"); mode {
	case "", "cancel":
	case "stop":
		return nil, refuse(http.StatusPermanentRedirect, "The termination mode \"stop\" has been removed. For an ungraceful shutdown, please use \"cancel\" instead. "+
			"For a graceful shutdown, please use \"jobs/:jobId/stop\" instead.")
	default:
		return nil, badRequest("Bad request, could not parse parameters: Cannot resolve query parameter (mode) from value %q.", mode)
	}
	if s.missing(id) != nil {
		return nil, refuse(http.StatusNotFound, "Job could not be found.")
	}
	if status := s.options.Job.Status().Status; status.Terminal() && status != job.Canceled {
		return nil, refuse(http.StatusConflict, "Job cancellation failed because the job has already reached another terminal state (%v).", status)
	}
	s.options.Job.Cancel()
	return reply{http.StatusAccepted, empty{}}, nil
}
