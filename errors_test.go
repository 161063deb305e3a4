package weir

import (
	"errors"
	"strings"
	"testing"
)

func TestNonRecoverableErrorsEndTheJobAtOnce(t *testing.T) {
	cause := errors.New("planted")
	env := NewTestEnv()
	env.EnableCheckpointing(0, ExactlyOnce)
	env.From(FromSlice(numbers(10))).UID("numbers").
		TryMap(func(v int64) (int64, error) { return v, NonRecoverable(cause) }).
		To(Discard[int64]())
	err := env.Execute(t.Context(), t.Name())
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), `operator "TryMap"`) {
		t.Errorf("got %v", err)
	}
}
