package config

import "fmt"

// Option is one key of the configuration: its type, default, limits and documentation. Options are the exported variables
// of this package; nobody else makes them.
type Option[T any] struct {
	// Key is what users write; Flink's wherever Flink has such an option, else it begins with "weir.".
	Key string
	// Aliases are older keys that are still read, as a warning tells.
	Aliases []string
	// Default is the value where no source sets one.
	Default T
	// Unset tells what happens without a value, for an option whose Default is not a value one could set.
	Unset string
	// Doc is the option's documentation: sentences of Markdown.
	Doc string
	// Differs tells how the option differs from Flink's; empty: it does not.
	Differs string

	kind  kind[T]
	limit limit[T]
}

// kind is how values of one type are read and written.
type kind[T any] struct {
	// name stands in the documentation and in messages: "duration".
	name string
	// example is a spelling, for messages.
	example string
	// parse reads what a file or a command line holds. Its error says what is wrong, and does not repeat the text.
	parse func(text string) (T, error)
	// accept takes what Go code may pass besides a T and a string; nil: nothing else.
	accept func(value any) (T, bool)
	// format writes a value as parse reads it.
	format func(T) string
}

// limit says which values of a type an option takes. The zero limit takes all.
type limit[T any] struct {
	ok   func(T) bool
	text string // as in "must be " + text
}

// option is the untyped face of *Option[T]: what the registry, Build and the documentation need.
type option interface {
	key() string
	aliases() []string
	decode(value any) (any, error)
	format(value any) string
	describe() description
}

// description is an option as the documentation shows it.
type description struct {
	Key, Type, Default, Limit, Doc, Differs string
	Aliases                                 []string
}

func (o *Option[T]) key() string { return o.Key }

func (o *Option[T]) aliases() []string { return o.Aliases }

func (o *Option[T]) format(value any) string { return o.kind.format(value.(T)) }

func (o *Option[T]) decode(value any) (any, error) {
	v, err := o.typed(value)
	if err != nil {
		return nil, err
	}
	if o.limit.ok != nil && !o.limit.ok(v) {
		return nil, fmt.Errorf("must be %s", o.limit.text)
	}
	return v, nil
}

func (o *Option[T]) typed(value any) (v T, err error) {
	if text, ok := value.(string); ok {
		return o.kind.parse(text)
	}
	if v, ok := value.(T); ok {
		return v, nil
	}
	if o.kind.accept != nil {
		if v, ok := o.kind.accept(value); ok {
			return v, nil
		}
	}
	return v, fmt.Errorf("is a Go %T; the type is %s, such as %s", value, o.kind.name, o.kind.example)
}

func (o *Option[T]) describe() description {
	shown := o.Unset
	if shown == "" {
		shown = "`" + o.kind.format(o.Default) + "`"
	}
	return description{
		Key: o.Key, Type: o.kind.name, Default: shown, Limit: o.limit.text, Doc: o.Doc, Differs: o.Differs, Aliases: o.Aliases,
	}
}
