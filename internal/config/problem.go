package config

import (
	"errors"
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with the configuration.
type Problem struct {
	// Key is the key as it was written; "" for what concerns a whole file.
	Key string
	// Value is the value as it was written; "" where it does not matter.
	Value string
	// Text says what is wrong, and what to do.
	Text string
	// Origin is where it was written.
	Origin Origin
}

func (p Problem) String() string {
	var b strings.Builder
	if p.Origin != "" {
		fmt.Fprintf(&b, "%s: ", p.Origin)
	}
	if p.Key != "" {
		b.WriteString(p.Key)
		if p.Value != "" {
			fmt.Fprintf(&b, " = %s", p.Value)
		}
		b.WriteString(" ")
	}
	b.WriteString(p.Text)
	return b.String()
}

// Error is everything that is wrong with a configuration.
type Error struct{ Problems []Problem }

func (e *Error) Error() string {
	if len(e.Problems) == 1 {
		return "weir: configuration: " + e.Problems[0].String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "weir: configuration: %d problems:", len(e.Problems))
	for _, p := range e.Problems {
		b.WriteString("\n  " + p.String())
	}
	return b.String()
}

// unknown is the problem of a key that no option has.
func unknown(s Setting) Problem {
	text := "is not an option; docs/config.md lists them"
	if reason := why(s.Key); reason != "" {
		text = "is Flink's, and not an option here: " + plain(reason)
	} else if near := nearest(s.Key); near != "" {
		text = fmt.Sprintf("is not an option; do you mean %s?", near)
	}
	return Problem{Key: s.Key, Text: text, Origin: s.Origin}
}

// merge is the problems of two errors in one; an error that is no *Error comes first, alone.
func merge(a *Error, err error) error {
	var b *Error
	switch {
	case a == nil:
		return err
	case err == nil:
		return a
	case !errors.As(err, &b):
		return err
	}
	return &Error{Problems: append(a.Problems, b.Problems...)}
}

// plain is a text of the documentation without its Markdown.
func plain(text string) string { return strings.ReplaceAll(text, "`", "") }
