package weirtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir/codec"
)

// keyOf makes a function that is equal for two values exactly when they are the same to a job: where their encodings are; of types without
// one, where they print the same.
func keyOf[T any]() func(T) string {
	c, err := codec.For[T]()
	if err != nil {
		return func(v T) string { return fmt.Sprintf("%#v", v) }
	}
	return func(v T) string {
		b, err := c.Append(nil, &v)
		if err != nil {
			return fmt.Sprintf("%#v", v)
		}
		return string(b)
	}
}

func expect[T any](t testing.TB, got, want []T) {
	t.Helper()
	if wrong := differences(got, want); len(wrong) > 0 {
		t.Errorf("the committed records are not those wanted:\n%s", list(wrong))
	}
}

func expectInOrder[T any](t testing.TB, what string, got, want []T) {
	t.Helper()
	key := keyOf[T]()
	if !slices.EqualFunc(got, want, func(a, b T) bool { return key(a) == key(b) }) {
		t.Errorf("%s is\n%s\nwant\n%s", what, list(texts(got)), list(texts(want)))
	}
}

// differences tells, of each record that is not there as often as it should, how often it is; nil: there is none. The order is that of
// want, then that of got.
func differences[T any](got, want []T) (wrong []string) {
	key := keyOf[T]()
	type count struct {
		text      string
		got, want int
	}
	counts, order := map[string]*count{}, []*count(nil)
	at := func(v T) *count {
		k := key(v)
		if counts[k] == nil {
			counts[k] = &count{text: text(v)}
			order = append(order, counts[k])
		}
		return counts[k]
	}
	for _, v := range want {
		at(v).want++
	}
	for _, v := range got {
		at(v).got++
	}
	for _, c := range order {
		switch {
		case c.got == c.want:
		case c.got == 0 && c.want == 1:
			wrong = append(wrong, "missing: "+c.text)
		case c.want == 0 && c.got == 1:
			wrong = append(wrong, "not wanted: "+c.text)
		case c.want == 0:
			wrong = append(wrong, fmt.Sprintf("not wanted, and there %d times: %s", c.got, c.text))
		default:
			wrong = append(wrong, fmt.Sprintf("there %d times, not %d: %s", c.got, c.want, c.text))
		}
	}
	return wrong
}

// hasExcess is true where a record is there more often than it is wanted.
func hasExcess[T any](got, want []T) bool {
	key, left := keyOf[T](), map[string]int{}
	for _, v := range want {
		left[key(v)]++
	}
	for _, v := range got {
		k := key(v)
		if left[k]--; left[k] < 0 {
			return true
		}
	}
	return false
}

// text is a value for people.
func text(v any) string {
	if s, ok := v.(string); ok {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%+v", v)
}

func texts[T any](vs []T) []string {
	all := make([]string, len(vs))
	for i, v := range vs {
		all[i] = text(v)
	}
	return all
}

// listMost is how many lines a list has.
const listMost = 20

// list is lines for people, indented.
func list(lines []string) string {
	if more := len(lines) - listMost; more > 0 {
		lines = append(slices.Clone(lines[:listMost]), fmt.Sprintf("and %d more", more))
	}
	if len(lines) == 0 {
		lines = []string{"(nothing)"}
	}
	return "\t" + strings.Join(lines, "\n\t")
}
