package config

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Origin tells a person where a value was written: "config.yaml:3:5", "-D", "wordcount/main.go:12". The zero Origin is
// that of a default.
type Origin string

// Caller is the origin of a value set by Go code: the file and line of the function skip levels above its caller.
func Caller(skip int) Origin {
	_, file, line, ok := runtime.Caller(skip + 1)
	if !ok {
		return "Go code"
	}
	dir, name := filepath.Split(file)
	return Origin(fmt.Sprintf("%s/%s:%d", filepath.Base(dir), name, line))
}

// Setting is one value as a source has it.
type Setting struct {
	Key    string
	Value  any // text, or what Go code passed
	Origin Origin
}

// Layer is what one source says, in its order; the last setting of a key counts.
type Layer []Setting

// Set adds a setting to the layer.
func (l *Layer) Set(key string, value any, from Origin) {
	*l = append(*l, Setting{Key: key, Value: value, Origin: from})
}

// Config is the configuration of a job: the value of every option and where it comes from. It never changes, and any
// goroutine may read it. A nil *Config has all defaults.
type Config struct {
	values   map[string]value
	warnings []string
}

type value struct {
	v      any // of the option's type
	origin Origin
}

// Build checks the layers and puts them upon each other: what a later layer says wins over earlier ones. The error is an
// [*Error] with every problem of every layer, also of settings that another one hides.
func Build(layers ...Layer) (*Config, error) {
	b := builder{Config: &Config{values: make(map[string]value)}, refused: make(map[string]bool)}
	for _, l := range layers {
		for _, s := range l {
			b.take(s)
		}
	}
	b.check()
	if len(b.problems) > 0 {
		return nil, &Error{Problems: b.problems}
	}
	return b.Config, nil
}

// builder is a Config in the making.
type builder struct {
	*Config
	problems []Problem
	refused  map[string]bool // options of which a value was refused: no rule is applied to them
}

// take puts one setting into the configuration, or notes what is wrong with it.
func (b *builder) take(s Setting) {
	o, renamed := find(s.Key)
	if o == nil {
		b.problems = append(b.problems, unknown(s))
		return
	}
	v, err := o.decode(s.Value)
	if err != nil {
		b.refused[o.key()] = true
		b.problems = append(b.problems, Problem{Key: s.Key, Value: fmt.Sprint(s.Value), Text: err.Error(), Origin: s.Origin})
		return
	}
	if renamed {
		b.warn("%s: %s is the old name of %s", s.Origin, s.Key, o.key())
	}
	b.values[o.key()] = value{v: v, origin: s.Origin}
}

func (b *builder) warn(format string, args ...any) {
	b.warnings = append(b.warnings, fmt.Sprintf(format, args...))
}

// Get is the value of an option: the one that was set, or its default.
func (c *Config) Get[T any](o *Option[T]) T {
	v, _ := c.Lookup(o)
	return v
}

// Lookup is the value of an option, and whether a source set it.
func (c *Config) Lookup[T any](o *Option[T]) (v T, set bool) {
	if c == nil {
		return o.Default, false
	}
	if x, ok := c.values[o.Key]; ok {
		return x.v.(T), true
	}
	return o.Default, false
}

// Origin is where the value of the option with this key was written; "" for a default.
func (c *Config) Origin(key string) Origin {
	if c == nil {
		return ""
	}
	return c.values[key].origin
}

// Warnings are remarks that do not hinder the job but should be logged: old names, values without effect.
func (c *Config) Warnings() []string {
	if c == nil {
		return nil
	}
	return slices.Clone(c.warnings)
}

// Settings are the values that sources have set, as text, ordered by key.
func (c *Config) Settings() Layer {
	if c == nil {
		return nil
	}
	var all Layer
	for key, x := range c.values {
		o, _ := find(key)
		all.Set(key, o.format(x.v), x.origin)
	}
	slices.SortFunc(all, func(a, b Setting) int { return strings.Compare(a.Key, b.Key) })
	return all
}
