package job

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/snapshot"
)

var rewrite = flag.Bool("rewrite", false, "write what the machine answers into testdata/*.txt")

// TestScripts runs the little stories of testdata. A line is an event; the lines indented below it are the actions it causes.
//
//	# A story, or the bug that the file guards.
//	graph source:2 -> total:2 | other:1       chains of vertices with their parallelism; the first of each has a coordinator
//	job restart=fixed-delay attempts=2 delay=1s
//	restored 5                                a completed checkpoint to start from
//	started
//	task 0-3@0 RUNNING                        tasks 0 to 3, attempt 0; FAILED may have a text and "permanent"
//	recorded                                  the answer to RecordEnd; behind it the text of an error
//	reset 1                                   the answer to ResetOperators with token 1; behind it the text of an error
//	location 1, acked 0-3@0 1, written 2, stored 3, discarded 4      answers for the coordinator, by token
//	savepoint 7 SUSPEND /target cancel        request 7; "-" is no target
//	+1s                                       time goes on, and passes
//	status                                    prints it
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runFile(t, file) })
	}
}

func runFile(t *testing.T, file string) {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(raw), "# ") {
		t.Error("a script begins with a comment: the story it tells, or the bug it guards")
	}
	s := script{random: 0.5}
	for n, line := range strings.Split(strings.TrimRight(string(raw), "\n"), "\n") {
		if strings.HasPrefix(line, "    ") {
			continue
		}
		s.out.WriteString(line + "\n")
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			if err := s.line(words); err != nil {
				t.Fatalf("%s:%d: %s: %v", file, n+1, line, err)
			}
		}
	}
	switch got := s.out.String(); {
	case *rewrite:
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	case got != string(raw):
		t.Errorf("the machine answers (accept it with -rewrite):\n%s", got)
	}
}

// script is a machine being driven by a script.
type script struct {
	now    checkpoint.Time
	random float64
	graph  *graph.Job
	config Config
	past   checkpoint.Recovered
	m      *Machine
	out    strings.Builder
}

func (s *script) line(words []string) error {
	switch words[0] {
	case "graph":
		s.graph = makeGraph(strings.Join(words[1:], " "))
		return nil
	case "job":
		return s.configure(words[1:])
	case "restored":
		id, err := strconv.Atoi(words[1])
		s.past.Completed = append(s.past.Completed, &checkpoint.Completed{ID: base.CheckpointID(id), Location: "chk-" + words[1]})
		return err
	case "status":
		r := s.m.Status()
		fmt.Fprintf(&s.out, "    %v restarts=%d failures=%d deploying=%d running=%d finished=%d\n", r.Status, r.Restarts, len(r.Failures),
			r.Deploying, r.Running, r.Finished)
		return nil
	}
	if strings.HasPrefix(words[0], "+") {
		d, err := time.ParseDuration(words[0][1:])
		s.now = s.now.Add(d)
		return errors.Join(err, s.step(TimePassed{}))
	}
	events, err := parseEvent(words)
	for _, e := range events {
		err = errors.Join(err, s.step(e))
	}
	return err
}

func (s *script) configure(words []string) error {
	s.config = Config{Name: "wordcount", Run: 1, Random: func() float64 { return s.random }}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		d, _ := time.ParseDuration(value)
		n, _ := strconv.Atoi(value)
		switch key {
		case "restart":
			s.config.Restart.Kind = Kind(value)
			if s.config.Restart.Kind == ExponentialDelay {
				s.config.Restart = DefaultStrategy()
			}
		case "attempts":
			s.config.Restart.Attempts = n
		case "delay":
			s.config.Restart.Delay = d
		case "savepoints":
			s.config.SavepointDir = value
		case "interval":
			s.config.Checkpoints.Interval = d
		default:
			return fmt.Errorf("no setting %q", key)
		}
	}
	return nil
}

func (s *script) step(e Event) (err error) {
	if s.m == nil {
		if s.m, err = NewMachine(s.config, s.graph, s.past); err != nil {
			return err
		}
	}
	for _, a := range s.m.Step(s.now, e) {
		if line := show(a); line != "" {
			s.out.WriteString("    " + line + "\n")
		}
	}
	return nil
}

// makeGraph makes chains of vertices joined by hash edges.
func makeGraph(text string) *graph.Job {
	var l graph.Logical
	for _, chain := range strings.Split(text, "|") {
		var before *graph.Node
		for _, v := range strings.Split(chain, "->") {
			name, p, _ := strings.Cut(strings.TrimSpace(v), ":")
			parallelism, _ := strconv.Atoi(p)
			n := &graph.Node{ID: graph.NodeID(len(l.Nodes)), Name: name, UID: name, Kind: graph.Sink, Parallelism: parallelism}
			if before == nil {
				n.Kind, n.Coordinator = graph.Source, "coordinator"
			} else {
				l.Edges = append(l.Edges, &graph.Edge{From: before.ID, To: n.ID, Partitioning: graph.Hash})
				n.Schemas = []snapshot.StateSchema{{Name: "sum", Kind: "value"}}
				if before.Kind == graph.Sink {
					before.Kind = graph.Transform
				}
			}
			before = n
			l.Nodes = append(l.Nodes, n)
		}
	}
	j, err := l.Build("wordcount", graph.Options{Parallelism: 1})
	if err != nil {
		panic(err)
	}
	return j
}

// parseEvent reads an event, or one for each task of a range.
func parseEvent(words []string) ([]Event, error) {
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	number := func(i int) int { n, _ := strconv.Atoi(arg(i)); return n }
	token := checkpoint.Token(number(1))
	relayed := func(e checkpoint.CoordinatorEvent) []Event { return []Event{Relayed{e}} }
	switch words[0] {
	case "started":
		return []Event{Started{}}, nil
	case "cancel":
		return []Event{CancelAsked{}}, nil
	case "suspend":
		return []Event{SuspendAsked{}}, nil
	case "task", "lost", "acked", "declined":
		return perTask(words)
	case "operator":
		return []Event{OperatorFailed{Vertex: number(1), Err: textError(words[2:])}}, nil
	case "reset":
		return []Event{OperatorsReset{Token: Token(number(1)), Err: textError(words[2:])}}, nil
	case "savepoint":
		target := arg(3)
		if target == "-" {
			target = ""
		}
		kinds := map[string]checkpoint.Kind{"SAVEPOINT": checkpoint.Savepoint, "SUSPEND": checkpoint.Suspend, "DRAIN": checkpoint.Drain}
		return []Event{SavepointAsked{Request: checkpoint.Request(number(1)), Kind: kinds[arg(2)], Target: target, Cancel: arg(4) == "cancel"}}, nil
	case "checkpoint":
		return []Event{CheckpointAsked{Request: checkpoint.Request(number(1))}}, nil
	case "location":
		return relayed(checkpoint.LocationCreated{Token: token, Location: "loc-" + arg(1), Err: textError(words[2:])}), nil
	case "snapped":
		return relayed(checkpoint.OperatorSnapped{Token: token, State: "enumerator", Err: textError(words[2:])}), nil
	case "written":
		return relayed(checkpoint.MetadataWritten{Token: token, Err: textError(words[2:])}), nil
	case "stored":
		return relayed(checkpoint.Stored{Token: token, Err: textError(words[2:])}), nil
	case "recorded":
		return []Event{EndRecorded{Err: textError(words[1:])}}, nil
	case "discarded":
		return relayed(checkpoint.Discarded{Token: token}), nil
	}
	return nil, fmt.Errorf("no event %q", words[0])
}

func textError(words []string) error {
	if len(words) == 0 {
		return nil
	}
	return errors.New(strings.Join(words, " "))
}

// perTask reads "task 0-3@1 STATE text", "lost 0@1 text", "acked 0-3@1 id", "declined 0@1 id".
func perTask(words []string) (events []Event, err error) {
	tasks, attempt, _ := strings.Cut(words[1], "@")
	low, high, many := strings.Cut(tasks, "-")
	if !many {
		high = low
	}
	first, err1 := strconv.Atoi(low)
	last, err2 := strconv.Atoi(high)
	n, err3 := strconv.Atoi(attempt)
	for t := first; t <= last; t++ {
		x := base.Exec{Task: base.Task(t), Attempt: base.FirstAttempt(1, n)}
		id := base.CheckpointID(0)
		if len(words) > 2 {
			i, _ := strconv.Atoi(words[2])
			id = base.CheckpointID(i)
		}
		switch words[0] {
		case "lost":
			events = append(events, LinkBroken{Exec: x, Err: textError(words[2:])})
		case "acked":
			events = append(events, Relayed{checkpoint.TaskAcked{Exec: x, ID: id, State: "state"}})
		case "declined":
			events = append(events, Relayed{checkpoint.TaskDeclined{Exec: x, ID: id, Reason: checkpoint.Declined, Err: textError(words[3:])}})
		default:
			events = append(events, reported(x, words))
		}
	}
	return events, errors.Join(err1, err2, err3)
}

func reported(x base.Exec, words []string) TaskReported {
	states := map[string]TaskState{"INITIALIZING": TaskInitializing, "RUNNING": TaskRunning, "FINISHED": TaskFinished, "FAILED": TaskFailed,
		"CANCELED": TaskCanceled}
	text := words[3:]
	permanent := len(text) > 0 && text[len(text)-1] == "permanent"
	return TaskReported{Exec: x, State: states[words[2]], Err: textError(text), Permanent: permanent}
}

// show is an action in one line. What the coordinator reports of its checkpoints is its own scripts' business.
func show(a Action) string {
	switch a := a.(type) {
	case CancelTasks:
		return "CancelTasks " + execs(a.Tasks)
	case ResetOperators:
		return fmt.Sprintf("ResetOperators token=%d vertices=%v from=%s", a.Token, a.Vertices, from(a.From))
	case DeployTasks:
		return fmt.Sprintf("DeployTasks %s from=%s", execs(a.Tasks), from(a.From))
	case RecordEnd:
		return fmt.Sprintf("RecordEnd %v", a.Status)
	case Relay:
		return showRelay(a.Action)
	case Reply:
		return fmt.Sprintf("Reply request=%d id=%d location=%s err=%v", a.Request, a.ID, a.Location, a.Err)
	case ReportStatus:
		return fmt.Sprintf("ReportStatus %v err=%v", a.Status, a.Err)
	case ReportRestart:
		return "ReportRestart " + a.String()
	case End:
		return fmt.Sprintf("End %v savepoint=%s err=%v", a.Status, a.Savepoint, a.Err)
	}
	panic(fmt.Sprintf("no action %T", a))
}

func showRelay(a checkpoint.CoordinatorAction) string {
	switch a := a.(type) {
	case checkpoint.CreateLocation:
		return fmt.Sprintf("CreateLocation token=%d id=%d kind=%v target=%s", a.Token, a.ID, a.Kind, a.Target)
	case checkpoint.SnapshotOperator:
		return fmt.Sprintf("SnapshotOperator token=%d id=%d vertex=%d", a.Token, a.ID, a.Vertex)
	case checkpoint.TriggerTasks:
		return fmt.Sprintf("TriggerTasks %s id=%d", execs(a.Tasks), a.Barrier.ID)
	case checkpoint.WriteMetadata:
		return fmt.Sprintf("WriteMetadata token=%d id=%d", a.Token, a.Completed.ID)
	case checkpoint.Store:
		return fmt.Sprintf("Store token=%d id=%d", a.Token, a.Completed.ID)
	case checkpoint.NotifyComplete:
		return fmt.Sprintf("NotifyComplete id=%d %s", a.ID, execs(a.Tasks))
	case checkpoint.NotifyAborted:
		return fmt.Sprintf("NotifyAborted id=%d %s", a.ID, execs(a.Tasks))
	case checkpoint.Discard:
		return fmt.Sprintf("Discard token=%d id=%d", a.Token, a.ID)
	case checkpoint.Report:
		return ""
	}
	return fmt.Sprintf("%T", a)
}

func execs(xs []base.Exec) string {
	words := make([]string, len(xs))
	for i, x := range xs {
		words[i] = fmt.Sprintf("%d@%d", x.Task, x.Attempt.Number())
	}
	return "[" + strings.Join(words, " ") + "]"
}

func from(c *checkpoint.Completed) string {
	if c == nil {
		return "nothing"
	}
	return strconv.Itoa(int(c.ID))
}
