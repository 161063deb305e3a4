package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/rest"
	"github.com/weirstream/weir/internal/stats"
)

func newCheckpoints() *cobra.Command {
	var a asker
	var asJSON bool
	c := &cobra.Command{
		Use:   "checkpoints [OPTIONS] <Job ID> [<Checkpoint ID>]",
		Short: "Shows the last checkpoints of a running job, and where their time went.",
		Long: "Shows the last checkpoints and savepoints of a running job: what they came to, and for each where its time went. Of one that is named it shows\n" +
			"each vertex, and the slowest subtasks.",
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			s, job, err := a.openJob(c, args)
			if err != nil {
				return err
			}
			ctx, cancel := triggering()
			defer cancel()
			if len(args) > 1 {
				if !checkpointID.MatchString(args[1]) {
					return usageError(c, fmt.Errorf("%q is no number of a checkpoint.", args[1]))
				}
				return showCheckpoint(ctx, c.OutOrStdout(), s.client, job, args[1], asJSON)
			}
			return showCheckpoints(ctx, c.OutOrStdout(), s.client, job, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print what REST answers, as JSON")
	a.flags(c.Flags())
	return c
}

var checkpointID = regexp.MustCompile(`^\d{1,18}$`)

func (a *asker) openJob(c *cobra.Command, args []string) (s *session, job string, err error) {
	if len(args) == 0 {
		return nil, "", usageError(c, errors.New("Missing JobID. Specify a Job ID to see its checkpoints."))
	}
	if job, err = parseJob(c, args[0]); err == nil {
		s, err = a.open(c)
	}
	return s, job, err
}

// showCheckpoints prints the history, the sentences and the summary.
func showCheckpoints(ctx context.Context, out io.Writer, client *rest.Client, job string, asJSON bool) error {
	all, err := client.Checkpoints(ctx, job)
	if err != nil {
		return failed(err, "Could not get the checkpoints of job %s.", job)
	}
	if asJSON {
		return printJSON(out, all)
	}
	n := all.Counts
	fmt.Fprintf(out, "%d triggered: %d completed, %d failed, %d in progress. Restored: %d.\n", n.Total, n.Completed, n.Failed, n.InProgress, n.Restored)
	if r := all.Latest.Restored; r != nil && r.Explanation != "" {
		fmt.Fprintln(out, r.Explanation)
	}
	if len(all.History) == 0 {
		return nil
	}
	t := newTable(out, "\nID", "TYPE", "STATUS", "TRIGGERED", "DURATION", "TASKS", "STATE", "NEW", "IN FLIGHT")
	for _, c := range all.History {
		t.row(c.ID, c.Type, c.Status, date(c.Triggered), millis(c.Duration), share(c.Acked, c.Subtasks), stats.FormatBytes(c.State),
			stats.FormatBytes(c.Checkpointed), stats.FormatBytes(c.Persisted))
	}
	t.flush()
	fmt.Fprintln(out, "\nWhere the time went:")
	for _, c := range all.History {
		fmt.Fprintf(out, "%d: %s\n", c.ID, cmp.Or(c.Explanation, "the server does not say."))
	}
	if n.Completed > 0 {
		printSummary(out, all)
	}
	return nil
}

func printSummary(out io.Writer, all *rest.Statistics) {
	t := newTable(out, fmt.Sprintf("\nOF %d COMPLETED", all.Counts.Completed), "MIN", "MEAN", "MAX", "P50", "P90", "P95", "P99", "P99.9")
	s := all.Summary
	for _, q := range []struct {
		name   string
		of     rest.Summary
		format func(int64) string
	}{{"duration", s.Duration, millis}, {"state", s.State, stats.FormatBytes}, {"new", s.Checkpointed, stats.FormatBytes},
		{"processed while aligning", s.Processed, stats.FormatBytes}, {"in flight", s.Persisted, stats.FormatBytes}} {
		row := []any{q.name, q.format(q.of.Min), q.format(q.of.Avg), q.format(q.of.Max)}
		for _, p := range []rest.Percentile{q.of.P50, q.of.P90, q.of.P95, q.of.P99, q.of.P999} {
			if math.IsNaN(float64(p)) {
				row = append(row, "-")
			} else {
				row = append(row, q.format(int64(math.Round(float64(p)))))
			}
		}
		t.row(row...)
	}
	t.flush()
}

// details are a checkpoint with everything below it.
type details struct {
	*rest.Checkpoint
	Vertices []vertexDetails `json:"vertices"`
}

type vertexDetails struct {
	Vertex string `json:"vertex"`
	Name   string `json:"name"`
	*rest.Share
}

func fetchCheckpoint(ctx context.Context, client *rest.Client, job, id string) (*details, error) {
	c, err := client.Checkpoint(ctx, job, id)
	if err != nil {
		return nil, err
	}
	vertices, err := client.Vertices(ctx, job)
	if err != nil {
		return nil, err
	}
	d := &details{Checkpoint: c}
	for _, v := range vertices {
		if _, ok := c.Tasks[v.ID]; !ok {
			continue
		}
		s, err := client.Share(ctx, job, id, v.ID)
		if err != nil {
			return nil, err
		}
		d.Vertices = append(d.Vertices, vertexDetails{Vertex: v.ID, Name: v.Name, Share: s})
	}
	return d, nil
}

func showCheckpoint(ctx context.Context, out io.Writer, client *rest.Client, job, id string, asJSON bool) error {
	d, err := fetchCheckpoint(ctx, client, job, id)
	if err != nil {
		return failed(err, "Could not get checkpoint %s of job %s.", id, job)
	}
	if asJSON {
		return printJSON(out, d)
	}
	c := d.Checkpoint
	fmt.Fprintf(out, "Checkpoint %d (%s) is %s: triggered %s, duration %s, %s tasks acknowledged.\n", c.ID, c.Type, c.Status, date(c.Triggered), millis(c.Duration),
		share(c.Acked, c.Subtasks))
	if c.Path != nil {
		fmt.Fprintln(out, *c.Path)
	}
	if c.Failure != nil {
		fmt.Fprintln(out, *c.Failure)
	}
	if c.Explanation != "" {
		fmt.Fprintln(out, c.Explanation)
	}
	t := newTable(out, "\nVERTEX", "TASKS", "DURATION", "STATE", "NEW", "PROCESSED", "IN FLIGHT")
	for _, v := range d.Vertices {
		t.row(v.Name, share(v.Acked, len(v.Subtasks)), millis(v.Duration), stats.FormatBytes(v.State), stats.FormatBytes(v.Checkpointed), stats.FormatBytes(v.Processed),
			stats.FormatBytes(v.Persisted))
	}
	t.flush()
	printSubtasks(out, d)
	return nil
}

// slowestShown is how many subtasks are shown.
const slowestShown = 5

// subtask is one of any vertex.
type subtask struct {
	vertex string
	of     int
	*rest.SubtaskShare
}

// printSubtasks shows the slowest subtasks, and those that have not acknowledged.
func printSubtasks(out io.Writer, d *details) {
	var done, missing []subtask
	for _, v := range d.Vertices {
		for i := range v.Subtasks {
			s := subtask{v.Name, len(v.Subtasks), &v.Subtasks[i]}
			if s.At == nil {
				missing = append(missing, s)
			} else {
				done = append(done, s)
			}
		}
	}
	slices.SortStableFunc(done, func(a, b subtask) int { return cmp.Compare(*b.Duration, *a.Duration) })
	if len(done) > 0 {
		t := newTable(out, "\nSLOWEST SUBTASKS", "", "DURATION", "START DELAY", "ALIGNMENT", "SYNC", "ASYNC", "STATE", "NEW", "UNALIGNED")
		for _, s := range done[:min(len(done), slowestShown)] {
			t.row(s.vertex, share(s.Index+1, s.of), millis(*s.Duration), millis(*s.StartDelay), millis(s.Alignment.Duration), millis(s.Checkpoint.Sync),
				millis(s.Checkpoint.Async), stats.FormatBytes(*s.State), stats.FormatBytes(*s.Checkpointed), *s.Unaligned)
		}
		t.flush()
	}
	for i, s := range missing {
		if i == 0 {
			fmt.Fprintln(out, "\nNot acknowledged:")
		}
		fmt.Fprintf(out, "%s (%s)\n", s.vertex, share(s.Index+1, s.of))
	}
}

// ---- output

func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// table is written in columns.
type table struct{ w *tabwriter.Writer }

func newTable(out io.Writer, columns ...string) table {
	t := table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	var row []any
	for _, c := range columns {
		row = append(row, c)
	}
	t.row(row...)
	return t
}

func (t table) row(cells ...any) {
	for i, c := range cells {
		if i > 0 {
			fmt.Fprint(t.w, "\t")
		}
		fmt.Fprint(t.w, c)
	}
	fmt.Fprintln(t.w)
}

func (t table) flush() { _ = t.w.Flush() }

func share(n, of int) string { return fmt.Sprintf("%d/%d", n, of) }

func date(ms int64) string { return time.UnixMilli(ms).Format("02.01.2006 15:04:05") }

// millis is a duration that REST has in milliseconds; negative: there is none.
func millis(ms int64) string {
	if ms < 0 {
		return "-"
	}
	return stats.FormatDuration(time.Duration(ms) * time.Millisecond)
}
