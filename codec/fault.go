package codec

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// fault is an error in a part of a value. It gathers the path to the part on its way out, innermost step first.
type fault struct {
	steps []string
	err   error
}

func (f *fault) Error() string { return f.path() + ": " + f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// path is the steps outermost first; of a very long path only the ends.
func (f *fault) path() string {
	const shown = 8
	steps := slices.Clone(f.steps)
	slices.Reverse(steps)
	if n := len(steps); n > 2*shown {
		steps = slices.Concat(steps[:shown], []string{"[...]"}, steps[n-shown:])
	}
	var path strings.Builder
	for i, s := range steps {
		if i > 0 && s[0] != '[' {
			path.WriteByte('.')
		}
		path.WriteString(s)
	}
	return path.String()
}

// inside says that err happened at the step.
func inside(step string, err error) error {
	if step == "" {
		return err
	}
	f, ok := err.(*fault)
	if !ok {
		f = &fault{err: err}
	}
	f.steps = append(f.steps, step)
	return f
}

func inElement(i int, err error) error { return inside("["+strconv.Itoa(i)+"]", err) }

// inEntry says that err happened in the value of a map under a key; of a long key it shows the beginning.
func inEntry(key reflect.Value, err error) error {
	if key.Kind() == reflect.String {
		return inside(fmt.Sprintf("[%.40q]", key.String()), err)
	}
	return inside(fmt.Sprintf("[%.60s]", fmt.Sprint(key)), err)
}

// within says that err happened in the i-th operation of p.
func (p *program) within(i int, err error) error { return inside(p.paths[i], err) }

var (
	errNesting = fmt.Errorf("nested more than %d deep: a value that contains itself, or a list that should be a slice", nestingMax)
	errShort   = errors.New("the bytes end in the middle of it")
	errEmpty   = fmt.Errorf("more than %d elements that have no bytes", emptyMax)
	errLong    = errors.New("an integer that is longer than ten bytes")
)
