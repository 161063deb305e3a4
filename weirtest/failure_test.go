package weirtest_test

import (
	"fmt"
	"runtime"
	"testing"
)

// failure is a testing.TB that may fail without failing the test.
type failure struct {
	testing.TB
	said     []string
	cleanups []func()
}

func (f *failure) Helper()             {}
func (f *failure) Failed() bool        { return len(f.said) > 0 }
func (f *failure) Cleanup(c func())    { f.cleanups = append(f.cleanups, c) }
func (f *failure) Log(...any)          {}
func (f *failure) Logf(string, ...any) {}
func (f *failure) Error(args ...any)   { f.said = append(f.said, fmt.Sprint(args...)) }
func (f *failure) Errorf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}
func (f *failure) Fatal(args ...any) {
	f.Error(args...)
	runtime.Goexit()
}
func (f *failure) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}
