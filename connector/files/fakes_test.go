package files

import (
	"context"
	"testing"

	"github.com/weirstream/weir"
)

// fakeMaster is the job's master as an enumerator sees it. What the enumerator runs is kept until the test has it done.
type fakeMaster struct {
	parallelism int
	there       []int
	given       map[int][]Split
	over        map[int]bool // told that no split comes
	running     []func() error
}

func newMaster(parallelism int) *fakeMaster {
	return &fakeMaster{parallelism: parallelism, given: map[int][]Split{}, over: map[int]bool{}}
}

func (m *fakeMaster) Assign(subtask int, splits ...Split) {
	m.given[subtask] = append(m.given[subtask], splits...)
}
func (m *fakeMaster) NoMoreSplits(subtask int) { m.over[subtask] = true }
func (m *fakeMaster) Readers() []int           { return m.there }
func (m *fakeMaster) Parallelism() int         { return m.parallelism }
func (m *fakeMaster) Backlog(bool)             {}
func (m *fakeMaster) Run(work func(context.Context) (any, error), done func(any, error) error) {
	m.running = append(m.running, func() error { return done(work(context.Background())) })
}

// work does what runs, once.
func (m *fakeMaster) work() error {
	running := m.running
	m.running = nil
	for _, do := range running {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// fakeTask is the surroundings of a reader or writer.
type fakeTask struct {
	index, of int
	requests  int
}

func (t *fakeTask) Subtask() (index, of int) { return t.index, t.of }
func (t *fakeTask) RequestSplit()            { t.requests++ }
func (t *fakeTask) Wake()                    {}
func (t *fakeTask) Job() string              { return "job" }

// must gives v; an error ends the test.
func must[T any](t testing.TB, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// start makes an enumerator and lets it look for files.
func start(t testing.TB, s LineSource, m *fakeMaster, state []byte) *enumerator {
	t.Helper()
	e, err := s.Enumerator(m, state)
	if err == nil {
		err = e.Start()
	}
	if err == nil {
		err = m.work()
	}
	return must(t, e, err).(*enumerator)
}

func newReader(t testing.TB, s LineSource, of int) (*reader, *fakeTask) {
	t.Helper()
	task := &fakeTask{of: of}
	r, err := s.Reader(task)
	return must(t, r, err).(*reader), task
}

var _ weir.Source[string, Split] = LineSource{}
