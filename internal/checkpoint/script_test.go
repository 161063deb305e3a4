package checkpoint

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/base"
)

var rewrite = flag.Bool("rewrite", false, "write what the machines answer into testdata/*.txt")

// TestScripts runs the little stories of testdata. A line is an event; the lines indented below it are the actions it must
// cause.
//
//	# A story, or the bug that the file guards.
//	Config timeout=1s                         what the Coordinator is made of: Config, Vertex, Completed, Recovered
//	Vertex name=source parallelism=2
//	HandlerConfig channels=2                  or a BarrierHandler
//	TaskChanged exec=0@1 state=RUNNING        task 0, attempt 1
//	+10ms                                     time goes on (TimePassed and AlarmRang are events of their own)
//	Status                                    prints the machine's status, as Deadline does its deadline
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(raw), "# ") {
				t.Error("a script begins with a comment: the story it tells, or the bug it guards")
			}
			got, err := runScript(string(raw))
			switch {
			case err != nil:
				t.Fatal(err)
			case *rewrite:
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			case got != string(raw):
				t.Errorf("the machine answers (accept it with -rewrite):\n%s", firstDifference(string(raw), got))
			}
		})
	}
}

// firstDifference shows the first line that differs, with what leads to it.
func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	i := 0
	for i < len(w) && i < len(g) && w[i] == g[i] {
		i++
	}
	var b strings.Builder
	for _, line := range g[max(0, i-3):min(i, len(g))] {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	for _, line := range w[min(i, len(w)):min(i+4, len(w))] {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	for _, line := range g[min(i, len(g)):min(i+4, len(g))] {
		fmt.Fprintf(&b, "+ %s\n", line)
	}
	return b.String()
}

// script is a machine being driven by a script.
type script struct {
	now       Time
	config    Config
	graph     Graph
	recovered Recovered
	c         *Coordinator
	h         *BarrierHandler
	out       strings.Builder
	watch     func(machine, event any) // sees each event before it is taken; nil: nobody does
}

func runScript(text string) (string, error) {
	var s script
	return s.run(text)
}

func (s *script) run(text string) (string, error) {
	for n, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if strings.HasPrefix(line, "    ") {
			continue
		}
		s.out.WriteString(line + "\n")
		if err := s.line(strings.TrimSpace(line)); err != nil {
			return "", fmt.Errorf("line %d: %s: %w", n+1, line, err)
		}
	}
	return s.out.String(), nil
}

func (s *script) line(line string) error {
	switch {
	case line == "" || line[0] == '#':
		return nil
	case line[0] == '+':
		d, err := time.ParseDuration(line[1:])
		s.now = s.now.Add(d)
		return err
	case line == "Status":
		return s.status()
	case line == "Deadline":
		return s.deadline()
	}
	v, err := parseValue(line)
	if err != nil {
		return err
	}
	return s.take(v)
}

func (s *script) take(v any) error {
	switch v := v.(type) {
	case Config:
		s.config = v
	case Vertex:
		v.First = base.Task(s.graph.Tasks())
		s.graph.Vertices = append(s.graph.Vertices, v)
	case Completed:
		s.recovered.Completed = append(s.recovered.Completed, &v)
	case Recovered:
		s.recovered.LastID = v.LastID
	case HandlerConfig:
		s.h = NewBarrierHandler(v)
	case HandlerEvent:
		s.see(s.h, v)
		for _, a := range s.h.Step(s.now, v) {
			s.action(a)
		}
	case CoordinatorEvent:
		if err := s.makeCoordinator(); err != nil {
			return err
		}
		s.c.now = s.now
		s.see(s.c, v)
		for _, a := range s.c.Step(s.now, v) {
			s.action(a)
		}
	}
	return nil
}

func (s *script) see(machine, event any) {
	if s.watch != nil {
		s.watch(machine, event)
	}
}

func (s *script) makeCoordinator() (err error) {
	if s.c == nil {
		s.c, err = NewCoordinator(s.config, s.graph, s.recovered)
	}
	return err
}

func (s *script) status() error {
	if s.h != nil {
		s.action(s.h.Status())
		return nil
	}
	err := s.makeCoordinator()
	s.action(s.c.Status())
	return err
}

func (s *script) deadline() error {
	d, some := Never, false
	if s.h != nil {
		d, some = s.h.Deadline()
	} else {
		d, some = s.c.Deadline()
	}
	if !some {
		s.out.WriteString("    none\n")
		return nil
	}
	fmt.Fprintf(&s.out, "    in %v\n", d.Sub(s.now))
	return nil
}

func (s *script) action(a any) { s.out.WriteString("    " + showAction(a) + "\n") }

// scriptTypes are the words that a line may begin with.
var scriptTypes = func() map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, v := range []any{
		JobRunning{}, JobNotRunning{}, TaskChanged{}, TaskEnded{}, BacklogChanged{}, Requested{}, LocationCreated{},
		OperatorSnapped{}, HookSnapped{}, OperatorSent{}, TriggerRefused{}, TaskAcked{}, TaskDeclined{}, MetadataWritten{},
		Stored{}, Discarded{}, RestoreAsked{}, Closed{}, TimePassed{},
		BarrierArrived{}, BarrierAnnounced{}, CancelArrived{}, ChannelEnded{}, Triggered{}, DataEnded{}, SnapshotWritten{},
		CompleteNotified{}, AbortNotified{}, AlarmRang{},
		Config{}, Vertex{}, Completed{}, Recovered{}, HandlerConfig{},
	} {
		types[reflect.TypeOf(v).Name()] = reflect.TypeOf(v)
	}
	return types
}()

// parseValue makes a value of a line "Type field=value flag".
func parseValue(line string) (any, error) {
	words := strings.Fields(line)
	typ, ok := scriptTypes[words[0]]
	if !ok {
		return nil, fmt.Errorf("%q is no event", words[0])
	}
	v := reflect.New(typ).Elem()
	for _, word := range words[1:] {
		name, text, _ := strings.Cut(word, "=")
		f, ok := fieldOf(v, name)
		if !ok {
			return nil, fmt.Errorf("%s has no field %q", words[0], name)
		}
		if err := parseField(f, text); err != nil {
			return nil, fmt.Errorf("%s: %w", word, err)
		}
	}
	return v.Interface(), nil
}

// fieldOf finds a field of v, or of its barrier, by its name in any case.
func fieldOf(v reflect.Value, name string) (reflect.Value, bool) {
	for i := range v.NumField() {
		if strings.EqualFold(v.Type().Field(i).Name, name) {
			return v.Field(i), true
		}
	}
	if b := v.FieldByName("Barrier"); b.IsValid() {
		return fieldOf(b, name)
	}
	return reflect.Value{}, false
}

// enums are the types whose values have names.
var enums = map[reflect.Type][]fmt.Stringer{
	reflect.TypeFor[Kind]():      {Checkpoint, FullCheckpoint, Savepoint, Suspend, Drain},
	reflect.TypeFor[Format]():    {Canonical, Native},
	reflect.TypeFor[Alignment](): {AtLeastOnce, Aligned, Unaligned},
	reflect.TypeFor[TaskState](): {TaskDeploying, TaskRunning, TaskFinished, TaskGone},
	reflect.TypeFor[Progress]():  {Begun, Succeeded, Failed},
	reflect.TypeFor[JobEnd]():    {JobFinished, JobCanceled, JobFailed, JobSuspended},
	reflect.TypeFor[Reason](): func() (all []fmt.Stringer) {
		for r := range reasons {
			all = append(all, r)
		}
		return all
	}(),
}

func parseField(f reflect.Value, text string) error {
	if names, ok := enums[f.Type()]; ok {
		for _, n := range names {
			if n.String() == text {
				f.Set(reflect.ValueOf(n))
				return nil
			}
		}
		return fmt.Errorf("no %v", f.Type())
	}
	switch f.Interface().(type) {
	case base.Exec:
		var x base.Exec
		_, err := fmt.Sscanf(text, "%d@%d", &x.Task, (*int64)(&x.Attempt))
		f.Set(reflect.ValueOf(x))
		return err
	case []Edge:
		return parseEdges(f, text)
	case []bool:
		var bits []bool
		for _, c := range text {
			bits = append(bits, c == '1')
		}
		f.Set(reflect.ValueOf(bits))
		return nil
	}
	switch f.Kind() {
	case reflect.Bool:
		f.SetBool(text == "" || text == "true")
	case reflect.String:
		f.SetString(text)
	case reflect.Interface:
		return parseInterface(f, text)
	default:
		return parseNumber(f, text)
	}
	return nil
}

// parseInterface makes an error or a state.
func parseInterface(f reflect.Value, text string) error {
	if f.Type() != reflect.TypeFor[error]() {
		f.Set(reflect.ValueOf(text))
		return nil
	}
	var err error = errors.New(text)
	if name, rest, ok := strings.Cut(text, ":"); ok {
		var why Reason
		if e := parseField(reflect.ValueOf(&why).Elem(), name); e != nil {
			return e
		}
		err = &DeclineError{why, errors.New(rest)}
	}
	f.Set(reflect.ValueOf(err))
	return nil
}

// parseEdges reads inputs=0,1p: an edge from vertex 0, and a pointwise one from vertex 1.
func parseEdges(f reflect.Value, text string) error {
	var edges []Edge
	for _, word := range strings.Split(text, ",") {
		var e Edge
		from, pointwise := strings.CutSuffix(word, "p")
		n, err := strconv.Atoi(from)
		if err != nil {
			return err
		}
		e.From = n
		if pointwise {
			e.Pattern = Pointwise
		}
		edges = append(edges, e)
	}
	f.Set(reflect.ValueOf(edges))
	return nil
}

func parseNumber(f reflect.Value, text string) error {
	if f.Type() == reflect.TypeFor[time.Duration]() {
		d, err := time.ParseDuration(text)
		f.SetInt(int64(d))
		return err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if f.CanUint() {
		f.SetUint(uint64(n))
	} else {
		f.SetInt(n)
	}
	return err
}

// showAction is an action as a line of a script.
func showAction(a any) string { return reflect.TypeOf(a).Name() + showFields(reflect.ValueOf(a)) }

func showFields(v reflect.Value) string {
	var b strings.Builder
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Name, v.Field(i)
		switch x := f.Interface().(type) {
		case Barrier:
			b.WriteString(showFields(f))
		case Completed:
		default:
			if text := showValue(name, f, x); text != "" {
				fmt.Fprintf(&b, " %s=%s", strings.ToLower(name), text)
			}
		}
	}
	return b.String()
}

// showValue is "" for what need not be said.
func showValue(name string, f reflect.Value, x any) string {
	switch x := x.(type) {
	case bool:
		if !x {
			return ""
		}
		return "true"
	case int:
		if x == 0 && name != "Channel" && name != "Vertex" && name != "Hook" { // these begin with 0
			return ""
		}
		return strconv.Itoa(x)
	case base.Exec:
		if x == NoExec {
			return ""
		}
		return showExec(x)
	case []base.Exec:
		var all []string
		for _, e := range x {
			all = append(all, showExec(e))
		}
		return "[" + strings.Join(all, " ") + "]"
	case *Completed:
		switch {
		case x != nil:
			return showCompleted(x)
		case name == "From":
			return "none"
		}
		return ""
	case []*Completed:
		var all []string
		for _, d := range x {
			all = append(all, fmt.Sprint(d.ID))
		}
		return "[" + strings.Join(all, " ") + "]"
	case []bool:
		return showBits(x)
	}
	if _, isEnum := enums[f.Type()]; f.IsZero() && (!isEnum || f.Type() == reflect.TypeFor[Reason]()) {
		return ""
	}
	return fmt.Sprint(x)
}

func showExec(x base.Exec) string { return fmt.Sprintf("%d@%d", x.Task, x.Attempt) }

func showBits(bits []bool) string {
	var b strings.Builder
	for _, bit := range bits {
		if bit {
			b.WriteByte('1')
		} else {
			b.WriteByte('0')
		}
	}
	return b.String()
}

// showCompleted is {id tasks operators hooks}, with - for a part that is not there and ! for one of an ended task.
func showCompleted(d *Completed) string {
	parts := func(all []any) string {
		var b []string
		for i, x := range all {
			text := "-"
			if x != nil {
				text = fmt.Sprint(x)
			}
			if len(all) == len(d.Ended) && d.Ended[i] {
				text += "!"
			}
			b = append(b, text)
		}
		return strings.Join(b, " ")
	}
	text := fmt.Sprintf("{%d %v", d.ID, d.Kind)
	if len(d.Tasks) > 0 {
		text += fmt.Sprintf(" tasks=[%s] operators=[%s]", parts(d.Tasks), parts(d.Operators))
	}
	if len(d.Hooks) > 0 {
		text += fmt.Sprintf(" hooks=[%s]", parts(d.Hooks))
	}
	return text + "}"
}
