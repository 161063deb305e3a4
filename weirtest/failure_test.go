package weirtest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Failing runs a test that may fail, and returns what it says then.
func Failing(t *testing.T, test func(t testing.TB)) string {
	t.Helper()
	f := &failure{TB: t}
	done := make(chan struct{})
	go func() { // so that it can be ended by Fatal
		defer close(done)
		test(f)
	}()
	<-done
	for _, c := range slices.Backward(f.cleanups) {
		c()
	}
	return strings.Join(f.said, "\n")
}

// failure is a testing.TB that may fail without failing the test.
type failure struct {
	testing.TB
	said     []string
	cleanups []func()
}

func (f *failure) Helper()                        {}
func (f *failure) Failed() bool                   { return len(f.said) > 0 }
func (f *failure) Cleanup(c func())               { f.cleanups = append(f.cleanups, c) }
func (f *failure) Log(...any)                     {}
func (f *failure) Logf(string, ...any)            {}
func (f *failure) Error(args ...any)              { f.said = append(f.said, fmt.Sprint(args...)) }
func (f *failure) Errorf(format string, a ...any) { f.said = append(f.said, fmt.Sprintf(format, a...)) }
func (f *failure) Fatal(args ...any)              { f.Error(args...); runtime.Goexit() }
func (f *failure) Fatalf(format string, a ...any) { f.Errorf(format, a...); runtime.Goexit() }
