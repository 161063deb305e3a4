package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// MemorySize is a number of bytes, written as Flink writes it: "5 mb", "20kb", "4096"; a kilobyte is 1,024 bytes.
type MemorySize int64

func (m MemorySize) String() string { return formatMemory(m) }

var strs = kind[string]{
	name: "text", example: `"a"`,
	parse:  func(text string) (string, error) { return text, nil },
	format: func(v string) string { return v },
}

var bools = kind[bool]{
	name: "true or false", example: "true",
	parse:  parseBool,
	format: strconv.FormatBool,
}

var ints = kind[int]{
	name: "whole number", example: "4",
	parse:  parseInt,
	accept: acceptInt[int],
	format: strconv.Itoa,
}

var floats = kind[float64]{
	name: "number", example: "1.5",
	parse:  parseFloat,
	accept: acceptFloat,
	format: func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) },
}

var durations = kind[time.Duration]{
	name: "duration", example: `"10 s"`,
	parse:  parseDuration,
	format: formatDuration,
}

var memories = kind[MemorySize]{
	name: "memory size", example: `"5 mb"`,
	parse:  parseMemory,
	accept: acceptInt[MemorySize],
	format: formatMemory,
}

// enums is the kind of a closed set of values, read without regard to case. What is no member is left to oneOf, so that a
// value from Go code is refused in the same words.
func enums[T ~string](members ...T) kind[T] {
	return kind[T]{
		name: "enum", example: fmt.Sprintf("%q", string(members[0])),
		parse: func(text string) (T, error) {
			for _, m := range members {
				if strings.EqualFold(text, string(m)) {
					return m, nil
				}
			}
			return T(text), nil
		},
		format: func(v T) string { return string(v) },
	}
}

// ---- limits

func oneOf[T ~string](members ...T) limit[T] {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = string(m)
	}
	return limit[T]{
		ok: func(v T) bool {
			for _, m := range members {
				if v == m {
					return true
				}
			}
			return false
		},
		text: enumerate(names, "or"),
	}
}

type ordered interface{ ~int | ~int64 | ~float64 }

func between[T ordered](k kind[T], least, most T) limit[T] {
	return limit[T]{
		ok:   func(v T) bool { return least <= v && v <= most }, // false for NaN
		text: "between " + k.format(least) + " and " + k.format(most),
	}
}

func atLeast[T ordered](k kind[T], least T) limit[T] {
	return limit[T]{
		ok:   func(v T) bool { return v >= least },
		text: "at least " + k.format(least),
	}
}

// offOr is for periods: zero switches them off, anything else is at least least.
func offOr(least time.Duration) limit[time.Duration] {
	return limit[time.Duration]{
		ok:   func(v time.Duration) bool { return v == 0 || v >= least },
		text: "0 or at least " + formatDuration(least),
	}
}

// enumerate joins words as a sentence does: "a, b or c".
func enumerate(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	n := len(words) - 1
	return strings.Join(words[:n], ", ") + " " + last + " " + words[n]
}

// ---- text to value and back

func parseBool(text string) (bool, error) {
	switch {
	case strings.EqualFold(text, "true"):
		return true, nil
	case strings.EqualFold(text, "false"):
		return false, nil
	}
	return false, errors.New("is not true or false")
}

func parseInt(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if errors.Is(err, strconv.ErrRange) {
		return 0, errors.New("is too large a number")
	}
	if err != nil {
		return 0, errors.New("is not a whole number")
	}
	return n, nil
}

func parseFloat(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, errors.New("is not a number")
	}
	return f, nil
}

// acceptInt takes any of Go's integers that fit.
func acceptInt[T ~int | ~int64](value any) (T, bool) {
	switch v := reflect.ValueOf(value); {
	case v.CanInt():
		return T(v.Int()), int64(T(v.Int())) == v.Int()
	case v.CanUint():
		return T(v.Uint()), T(v.Uint()) >= 0 && uint64(T(v.Uint())) == v.Uint()
	}
	return 0, false
}

func acceptFloat(value any) (float64, bool) {
	if v := reflect.ValueOf(value); v.CanFloat() {
		return v.Float(), true
	}
	n, ok := acceptInt[int64](value)
	return float64(n), ok
}

// scaled is a whole number of units, if it can be told in 63 bits.
func scaled(digits string, unit int64) (int64, error) {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > math.MaxInt64/unit {
		return 0, errors.New("is too large")
	}
	return n * unit, nil
}

// splitUnit cuts "10 s" into "10" and "s"; false: the text is not digits, perhaps space, perhaps letters.
func splitUnit(text string) (digits, unit string, ok bool) {
	text = strings.TrimSpace(text)
	end := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(text)
	}
	unit = strings.ToLower(strings.TrimSpace(text[end:]))
	return text[:end], unit, end > 0
}

var memoryUnits = []struct {
	name  string
	bytes int64
}{{"tb", 1 << 40}, {"gb", 1 << 30}, {"mb", 1 << 20}, {"kb", 1 << 10}, {"bytes", 1}}

var memoryUnitOf = map[string]int64{
	"": 1, "b": 1, "bytes": 1,
	"k": 1 << 10, "kb": 1 << 10, "kibibytes": 1 << 10,
	"m": 1 << 20, "mb": 1 << 20, "mebibytes": 1 << 20,
	"g": 1 << 30, "gb": 1 << 30, "gibibytes": 1 << 30,
	"t": 1 << 40, "tb": 1 << 40, "tebibytes": 1 << 40,
}

func parseMemory(text string) (MemorySize, error) {
	digits, unit, ok := splitUnit(text)
	if !ok {
		return 0, errors.New(`is not a memory size, such as "5 mb"`)
	}
	bytes, ok := memoryUnitOf[unit]
	if !ok {
		return 0, fmt.Errorf("has the unit %q; there are b, kb, mb, gb and tb", unit)
	}
	n, err := scaled(digits, bytes)
	return MemorySize(n), err
}

func formatMemory(m MemorySize) string {
	for _, u := range memoryUnits {
		if m != 0 && int64(m)%u.bytes == 0 {
			return fmt.Sprintf("%d %s", int64(m)/u.bytes, u.name)
		}
	}
	return "0 bytes"
}
