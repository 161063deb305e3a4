package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/weirstream/weir"
)

// Line is a record of the output: an integer, and the count and sum of the integers of its key so far, itself included.
type Line struct{ Key, Value, Count, Sum int64 }

// appendLine appends a line as text.
func appendLine(dst []byte, l Line) []byte {
	return fmt.Appendf(dst, "%d %d %d %d\n", l.Key, l.Value, l.Count, l.Sum)
}

// count keeps a count and a sum by key.
type count struct {
	Count weir.Value[int64] `state:"count"`
	Sum   weir.Value[int64] `state:"sum"`

	FailAt, PanicAt fault
}

// Process implements weir.KeyedFunction.
func (c *count) Process(ctx *weir.KeyedContext[int64], v int64, out weir.Out[Line]) error {
	if c.PanicAt.strikes(v) {
		panic(fmt.Sprintf("the integer %d has come, at which -panic-at asks for a panic", v))
	}
	if c.FailAt.strikes(v) {
		return fmt.Errorf("the integer %d has come, at which -fail-at asks for an error", v)
	}
	c.Count.Set(c.Count.Get() + 1)
	c.Sum.Set(c.Sum.Get() + v)
	out.Emit(Line{ctx.Key(), v, c.Count.Get(), c.Sum.Get()})
	return nil
}

// fault strikes once in all the lives of a job: whoever makes the file Marker first is struck.
type fault struct {
	At     int64 // 0: never
	Marker string
}

func (f fault) strikes(v int64) bool {
	if v != f.At || f.At == 0 {
		return false
	}
	marker, err := os.OpenFile(f.Marker, os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return false
	}
	if err == nil {
		err = marker.Close()
	}
	if err != nil {
		panic(err) // a job that fails for ever is better than a fault that never was
	}
	return true
}
