package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
)

// Client asks a Server, or the REST of a Flink cluster.
type Client struct {
	base string // as in http://host:port
	http http.Client
}

// NewClient asks at an address: HOST:PORT, or a URL.
func NewClient(address string) (*Client, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Port() == "" {
		return nil, fmt.Errorf("The address %q is not HOST:PORT.", strings.TrimPrefix(address, "http://"))
	}
	return &Client{base: strings.TrimSuffix(address, "/")}, nil
}

// RemoteError is an error that the server told of.
type RemoteError struct {
	// Texts are the messages, the outermost first, without the names of Java's exceptions.
	Texts []string
}

func (e *RemoteError) Error() string { return strings.Join(e.Texts, "\nCaused by: ") }

// SavepointOrder is what is asked for in a savepoint or a stop.
type SavepointOrder struct {
	// Target is its directory; "": the one that the job is configured with.
	Target string
	Format checkpoint.Format
	// Cancel cancels the job after the savepoint; Drain ends its data before it stops.
	Cancel, Drain bool
}

func (o SavepointOrder) target() *string {
	if o.Target == "" {
		return nil
	}
	return &o.Target
}

// Jobs are the jobs of the server.
func (c *Client) Jobs(ctx context.Context) ([]JobOverview, error) {
	var b overviewsBody
	err := c.call(ctx, "GET", "/jobs/overview", nil, &b)
	return b.Jobs, err
}

// Cancel cancels a job, and does not wait for its end.
func (c *Client) Cancel(ctx context.Context, job string) error {
	return c.call(ctx, "PATCH", "/jobs/"+job+"?mode=cancel", empty{}, nil)
}

// CheckpointTimeout is how long a job waits for its own checkpoints.
func (c *Client) CheckpointTimeout(ctx context.Context, job string) (time.Duration, error) {
	var b checkpointConfigBody
	err := c.call(ctx, "GET", "/jobs/"+job+"/checkpoints/config", nil, &b)
	return time.Duration(b.Timeout) * time.Millisecond, err
}

// Checkpoints are what a job remembers of its checkpoints.
func (c *Client) Checkpoints(ctx context.Context, job string) (*Statistics, error) {
	s := &Statistics{}
	return s, c.call(ctx, "GET", "/jobs/"+job+"/checkpoints", nil, s)
}

// Checkpoint is one that the job remembers, with a part of each vertex.
func (c *Client) Checkpoint(ctx context.Context, job, id string) (*Checkpoint, error) {
	p := &Checkpoint{}
	return p, c.call(ctx, "GET", "/jobs/"+job+"/checkpoints/details/"+id, nil, p)
}

// Share is a vertex's part of a checkpoint, subtask by subtask.
func (c *Client) Share(ctx context.Context, job, id, vertex string) (*Share, error) {
	s := &Share{}
	return s, c.call(ctx, "GET", "/jobs/"+job+"/checkpoints/details/"+id+"/subtasks/"+vertex, nil, s)
}

// Vertices are those of a job, sources first.
func (c *Client) Vertices(ctx context.Context, job string) ([]Vertex, error) {
	var b struct {
		Vertices []Vertex `json:"vertices"`
	}
	err := c.call(ctx, "GET", "/jobs/"+job, nil, &b)
	return b.Vertices, err
}

// TriggerSavepoint begins a savepoint; AwaitSavepoint waits for it.
func (c *Client) TriggerSavepoint(ctx context.Context, job string, o SavepointOrder) (trigger string, err error) {
	f := format(o.Format)
	return c.trigger(ctx, "/jobs/"+job+"/savepoints", savepointRequest{Target: o.target(), Cancel: o.Cancel, Format: &f})
}

// TriggerStop begins to stop a job with a savepoint; AwaitSavepoint waits for it.
func (c *Client) TriggerStop(ctx context.Context, job string, o SavepointOrder) (trigger string, err error) {
	f := format(o.Format)
	return c.trigger(ctx, "/jobs/"+job+"/stop", stopRequest{Target: o.target(), Drain: o.Drain, Format: &f})
}

// TriggerCheckpoint begins a checkpoint, of which AwaitCheckpoint waits for the end.
func (c *Client) TriggerCheckpoint(ctx context.Context, job string, full bool) (trigger string, err error) {
	kind := "CONFIGURED"
	if full {
		kind = "FULL"
	}
	return c.trigger(ctx, "/jobs/"+job+"/checkpoints", checkpointRequest{Type: &kind})
}

// TriggerDisposal begins to delete a savepoint; AwaitDisposal waits for it.
func (c *Client) TriggerDisposal(ctx context.Context, path string) (trigger string, err error) {
	return c.trigger(ctx, "/savepoint-disposal", disposalRequest{Path: &path})
}

func (c *Client) trigger(ctx context.Context, path string, order any) (string, error) {
	var b triggered
	err := c.call(ctx, "POST", path, order, &b)
	return b.ID, err
}

// AwaitSavepoint waits for a savepoint, or a stop, and is where it lies.
func (c *Client) AwaitSavepoint(ctx context.Context, job, trigger string) (location string, err error) {
	var end savepointEnd
	if err := c.await(ctx, "/jobs/"+job+"/savepoints/"+trigger, &end); err != nil {
		return "", err
	}
	return end.Location, end.Failure.err()
}

// AwaitCheckpoint waits for a checkpoint, and is its number.
func (c *Client) AwaitCheckpoint(ctx context.Context, job, trigger string) (base.CheckpointID, error) {
	var end checkpointEnd
	if err := c.await(ctx, "/jobs/"+job+"/checkpoints/"+trigger, &end); err != nil {
		return 0, err
	}
	return end.ID, end.Failure.err()
}

// AwaitDisposal waits until a savepoint is deleted.
func (c *Client) AwaitDisposal(ctx context.Context, trigger string) error {
	var end disposalEnd
	if err := c.await(ctx, "/savepoint-disposal/"+trigger, &end); err != nil {
		return err
	}
	return end.Failure.err()
}

const (
	// askedFirst and askedLast are the pauses between two questions: each is twice the one before.
	askedFirst = 5 * time.Millisecond
	askedLast  = 500 * time.Millisecond
)

// await asks until an operation has ended.
func (c *Client) await(ctx context.Context, path string, end any) error {
	for pause := askedFirst; ; pause = min(2*pause, askedLast) {
		var b struct {
			Status    progressStatus  `json:"status"`
			Operation json.RawMessage `json:"operation"`
		}
		if err := c.call(ctx, "GET", path, nil, &b); err != nil {
			return err
		}
		if b.Status.ID == completed {
			return json.Unmarshal(b.Operation, end)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// call makes one request.
func (c *Client) call(ctx context.Context, method, path string, body, into any) error {
	var sent io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(b)
	}
	q, err := http.NewRequestWithContext(ctx, method, c.base+"/v1"+path, sent)
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json; charset=UTF-8")
	r, err := c.http.Do(q)
	if err != nil {
		return c.unreachable(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		return c.unreachable(err)
	case r.StatusCode >= http.StatusMultipleChoices:
		return remoteError(r, b)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%s answers what neither Weir nor Flink does: %w", c.base, err)
	}
	return nil
}

// unreachable says what to do where nobody answers.
func (c *Client) unreachable(err error) error {
	address := strings.TrimPrefix(c.base, "http://")
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("Nothing answers at %s: connection refused. No job runs there, or it has ended. A job prints its address when it starts "+
			"(\"Rest endpoint of job ...\"); name it with -m HOST:PORT.", address)
	}
	return fmt.Errorf("%s cannot be asked: %w", address, err)
}

func remoteError(r *http.Response, body []byte) error {
	var b errorBody
	if json.Unmarshal(body, &b) != nil || len(b.Errors) == 0 {
		return &RemoteError{Texts: []string{"the server answers " + r.Status}}
	}
	var texts []string
	for _, e := range b.Errors {
		texts = append(texts, textsOf(e)...)
	}
	return &RemoteError{Texts: texts}
}

func (f *failure) err() error {
	if f == nil {
		return nil
	}
	return &RemoteError{Texts: textsOf(f.Stack)}
}

var (
	exceptionName = regexp.MustCompile(`^((?:[a-z][\w]*\.)+[A-Z][\w$]*(?:: )?)+`)
	stackLine     = regexp.MustCompile(`(?m)^\s+(?:at .*|\.\.\. \d+ more)\n?`)
)

// textsOf are the messages of a Java stack trace. An exception whose message is its cause's says nothing.
func textsOf(stack string) []string {
	var texts []string
	for text := range strings.SplitSeq(stackLine.ReplaceAllString(stack, ""), "Caused by: ") {
		text = strings.TrimSpace(exceptionName.ReplaceAllString(strings.TrimSpace(text), ""))
		if text != "" && (len(texts) == 0 || texts[len(texts)-1] != text) {
			texts = append(texts, text)
		}
	}
	return texts
}
