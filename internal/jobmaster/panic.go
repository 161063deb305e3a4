package jobmaster

import (
	"fmt"
	"runtime/debug"
)

// panicError is a panic of user code.
type panicError struct {
	value any
	stack []byte
}

// panicked is called while the panic unwinds, so that the stack is that of the code that panicked.
func panicked(value any) error { return &panicError{value: value, stack: debug.Stack()} }

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.value, e.stack) }

func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}
