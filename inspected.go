package weir

import (
	"encoding/binary"
	"fmt"
	"reflect"

	"github.com/weirstream/weir/codec"
)

// Function implements operator.Inspected.
func (c *core[U]) Function() any { return c.function() }

// States implements operator.Inspected.
func (c *core[U]) States() (names []string) {
	if c.proto == nil {
		return nil
	}
	for _, f := range c.proto.fields {
		if f.side == "" {
			names = append(names, f.spec.Name)
		}
	}
	return names
}

// Field implements operator.Inspected.
func (c *core[U]) Field(state string) any {
	if c.inst == nil {
		return nil
	}
	for _, f := range c.proto.fields {
		if f.side == "" && f.spec.Name == state {
			return c.field(f)
		}
	}
	return nil
}

// field is a pointer to a declared field of the subtask's copy.
func (c *core[U]) field(f fieldOf) any {
	return reflect.ValueOf(c.inst.function).Elem().FieldByIndex(f.index).Addr().Interface()
}

// HashOf implements operator.InspectedByKey.
func (o *keyedCore[K, U]) HashOf(key any) (uint64, error) {
	k, ok := key.(K)
	if !ok {
		return 0, fmt.Errorf("a key of %T was asked for, but the operator's keys are of %T", key, k)
	}
	if err := o.codec.Valid(k); err != nil {
		return 0, err
	}
	return o.state.Hash(k), nil
}

// WithKey implements operator.InspectedByKey.
func (o *keyedCore[K, U]) WithKey(key any, look func()) error {
	hash, err := o.HashOf(key)
	if err != nil {
		return err
	}
	o.state.Seek(hash, key.(K))
	look()
	o.state.Settle()
	o.state.Leave()
	return nil
}

// Keys implements operator.InspectedByKey.
func (o *keyedCore[K, U]) Keys(yield func(key any, hash uint64) bool) {
	o.state.Look(func(k K) bool { return yield(k, o.state.Hash(k)) })
}

// Timers implements operator.InspectedByKey.
func (o *keyedCore[K, U]) Timers(event bool) int { return o.state.Timers(event).Len() }

// AppendState implements operator.InspectedByKey.
func (o *keyedCore[K, U]) AppendState(dst []byte) (_ []byte, err error) {
	if o.proto == nil {
		return dst, nil
	}
	for _, f := range o.proto.fields {
		if f.side != "" {
			continue
		}
		if s, ok := o.field(f).(appended); ok {
			if dst, err = s.append(dst); err != nil {
				return nil, fmt.Errorf("state %q: %w", f.spec.Name, err)
			}
		}
	}
	return dst, nil
}

// appended is a state by key whose value for the current key can be written.
type appended interface {
	append(dst []byte) ([]byte, error)
}

// appendValue writes a value behind dst, and before it whether there is one.
func appendValue[V any](dst []byte, v V, there bool) ([]byte, error) {
	if !there {
		return append(dst, 0), nil
	}
	c, err := codec.For[V]()
	if err != nil {
		return nil, err
	}
	return c.Append(append(dst, 1), &v)
}

func (s *Value[V]) append(dst []byte) ([]byte, error) {
	v, there := s.Lookup()
	return appendValue(dst, v, there)
}

func (s *Reducing[V]) append(dst []byte) ([]byte, error) {
	v, there := s.Lookup()
	return appendValue(dst, v, there)
}

func (s *List[V]) append(dst []byte) (_ []byte, err error) {
	dst = binary.AppendUvarint(dst, uint64(s.Len()))
	for v := range s.All() {
		if dst, err = appendValue(dst, v, true); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

func (s *Map[MK, V]) append(dst []byte) (_ []byte, err error) {
	dst = binary.AppendUvarint(dst, uint64(s.Len()))
	for k, v := range s.All() {
		if dst, err = appendValue(dst, k, true); err == nil {
			dst, err = appendValue(dst, v, true)
		}
		if err != nil {
			return nil, err
		}
	}
	return dst, nil
}
