package weir

import (
	"strings"
	"sync/atomic"
	"testing"
)

func TestAKeyThatChangesIsRefused(t *testing.T) {
	var asked atomic.Int64
	env := NewTestEnv()
	env.From(FromSlice(numbers(10))).UID("numbers").
		KeyBy(func(int64) int64 { return asked.Add(1) }).
		Scan("n", func(n int, _ int64) (int, int) { return n + 1, n + 1 }).UID("n").
		To(Discard[int]())
	err := env.Execute(t.Context(), t.Name())
	if err == nil || !strings.Contains(err.Error(), "the function given to KeyBy must return the same key") || strings.Contains(err.Error(), "goroutine") {
		t.Errorf("got %v", err)
	}
}
