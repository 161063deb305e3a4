package main

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
	"time"

	"github.com/spf13/cobra"
)

// client speaks to the REST API of a job, or of anything else that has Flink's.
type client struct {
	base string // http://HOST:PORT/v1
	http http.Client
}

// clientOptions are the options of every action that speaks to a job.
type clientOptions struct{ manager string }

const managerDefault = "127.0.0.1:8081"

func (o *clientOptions) add(c *cobra.Command) {
	c.Flags().StringVarP(&o.manager, "jobmanager", "m", managerDefault, "where the job serves its REST API, as `host:port`; the job prints it when it starts")
}

func (o *clientOptions) client() *client {
	base := o.manager
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	return &client{base: strings.TrimRight(base, "/") + "/v1"}
}

// call sends a request, and decodes the answer into out.
func (c *client) call(ctx context.Context, method, path string, body, out any) error {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, sent)
	if err != nil {
		return err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return c.unreachable(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return err
	case answer.StatusCode >= 300:
		return refusal(answer.Status, text)
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("%s%s answered with something else than Flink's REST API: %w", c.base, path, err)
	}
	return nil
}

// unreachable says where nobody answered.
func (c *client) unreachable(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return fmt.Errorf("there is no answer from %s: %w. A job prints where it serves its REST API when it starts; say it with -m HOST:PORT", strings.TrimSuffix(c.base, "/v1"), err)
}

// refusal is the error of an answer that is none: of {"errors": [...]} the texts, without the stack traces.
func refusal(status string, text []byte) error {
	var refused struct {
		Errors []string `json:"errors"`
	}
	if json.Unmarshal(text, &refused) != nil || len(refused.Errors) == 0 {
		return fmt.Errorf("%s: %.200s", status, text)
	}
	var lines []string
	for _, e := range refused.Errors {
		lines = append(lines, causes(e)...)
	}
	return errors.New(strings.Join(lines, "\n"))
}

// classes are the names of exceptions in front of a message.
var classes = regexp.MustCompile(`^((Caused by: )?([a-z_]\w*\.)+[\w$]+: )+`)

// causes are the messages of a stack trace.
func causes(trace string) (lines []string) {
	for line := range strings.Lines(trace) {
		line = classes.ReplaceAllString(strings.TrimRight(line, "\r\n"), "")
		if line != "" && !strings.HasPrefix(line, "\t") && (len(lines) == 0 || lines[len(lines)-1] != line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// operation is the state of something that takes time.
type operation struct {
	Status struct {
		ID string `json:"id"`
	} `json:"status"`
	Operation *struct {
		Location     string `json:"location"`
		CheckpointID int64  `json:"checkpointId"`
		Failure      *struct {
			StackTrace string `json:"stack-trace"`
		} `json:"failure-cause"`
	} `json:"operation"`
}

// triggered is the answer to a request for one.
type triggered struct {
	RequestID string `json:"request-id"`
}

// Polling is quick at first, as most savepoints are, and then less so.
const (
	pollFirst = 20 * time.Millisecond
	pollMost  = time.Second
)

// wait asks until the operation is over.
func (c *client) wait(ctx context.Context, path string) (o operation, err error) {
	for pause := pollFirst; ; pause = min(2*pause, pollMost) {
		if err := c.call(ctx, http.MethodGet, path, nil, &o); err != nil {
			return o, err
		}
		if o.Status.ID != "IN_PROGRESS" {
			break
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return o, ctx.Err()
		}
	}
	if o.Operation == nil {
		return o, fmt.Errorf("the operation is %s, with no result", o.Status.ID)
	}
	if f := o.Operation.Failure; f != nil {
		return o, errors.New(strings.Join(causes(f.StackTrace), "\nCaused by: "))
	}
	return o, nil
}

// run triggers an operation at path, and waits until it is over, which it asks at status.
func (c *client) run(ctx context.Context, path, status string, body any) (operation, error) {
	var t triggered
	if err := c.call(ctx, http.MethodPost, path, body, &t); err != nil {
		return operation{}, err
	}
	return c.wait(ctx, status+"/"+t.RequestID)
}

// failed is the message of an action that was understood and did not work, in Flink's form.
func failed(err error, format string, args ...any) error {
	return fmt.Errorf("\n------------------------------------------------------------\n The program finished with the following exception:\n\n%s\nCaused by: %w",
		fmt.Sprintf(format, args...), err)
}

var jobIDs = regexp.MustCompile(`^[0-9a-fA-F]{32}$`)

// parseJob checks a job id.
func parseJob(c *cobra.Command, id string) (string, error) {
	if !jobIDs.MatchString(id) {
		return "", usageError(c, fmt.Errorf("Cannot parse JobID from %q. The expected format is [0-9a-fA-F]{32}, e.g. fd72014d4c864993a2e5a9287b4a9c5d.", id))
	}
	return strings.ToLower(id), nil
}

// formatType is the value of --type as the API has it.
func formatType(c *cobra.Command, name string) (string, error) {
	switch upper := strings.ToUpper(name); upper {
	case "CANONICAL", "NATIVE":
		return upper, nil
	}
	return "", usageError(c, fmt.Errorf("Unsupported savepoint format %q: it is canonical or native.", name))
}

// orNull is nil for no text at all: null in JSON.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
