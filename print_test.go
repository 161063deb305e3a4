package weir

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

// writerTask is a WriterContext.
type writerTask struct{ index, of int }

func (t writerTask) Subtask() (int, int) { return t.index, t.of }
func (t writerTask) Job() string         { return "job" }

func TestPrint(t *testing.T) {
	var b bytes.Buffer
	k := PrintTo[any](&b)
	for _, task := range []writerTask{{0, 1}, {0, 2}, {1, 2}} {
		w, err := k.Writer(task)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []any{"a b", 7, struct{ X, Y int }{1, 2}} {
			if err := w.Write(v, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := "a b\n7\n{1 2}\n1> a b\n1> 7\n1> {1 2}\n2> a b\n2> 7\n2> {1 2}\n"
	if b.String() != want {
		t.Errorf("printed %q", b.String())
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestPrintFails(t *testing.T) {
	w, _ := PrintTo[int](brokenPipe{}).Writer(writerTask{0, 1})
	if err := w.Write(1, time.Time{}); err == nil || !strings.Contains(err.Error(), "broken pipe") {
		t.Error(err)
	}
}

func TestDiscard(t *testing.T) {
	w, _ := Discard[int]().Writer(writerTask{0, 1})
	if err := errors.Join(w.Write(1, time.Time{}), w.Flush(true), w.Close()); err != nil {
		t.Error(err)
	}
}
