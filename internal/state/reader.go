package state

import (
	"errors"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/snapshot"
)

// reader decodes values of V as a file has them, which an older version of the program may have written: with another schema.
// Files are read one after the other, by the owner's goroutine; before the first value of each, as says how it was written.
//
// Where nothing has changed the reader is the codec itself, so that restores pay nothing for those that migrate. What is
// restored is written with the declared schema from then on, whether it is touched or not: there is no mixture of versions
// in memory or in a file.
type reader[V any] struct {
	*codec.Reader[V]
	schema string // that it reads
}

// as makes it read what was written with a schema, which comparison has allowed.
func (r *reader[V]) as(schema string, c *codec.Codec[V]) (err error) {
	if r.Reader == nil || r.schema != schema {
		r.schema = schema
		r.Reader, _, err = c.From(schema)
	}
	return err
}

// Decode is as codec.Reader's, but that its error is for good.
func (r *reader[V]) Decode(src []byte, v *V) (rest []byte, err error) {
	if rest, err = r.Reader.Decode(src, v); err != nil {
		err = &unreadable{err}
	}
	return rest, err
}

// unreadable is a stored value that cannot become what is declared, though its schema can: one that does not fit into a narrower
// integer, or that the methods of an opaque type do not read. To restore it once more repairs nothing.
type unreadable struct{ error }

func (e *unreadable) Error() string {
	return "a stored value cannot be read as what is declared: " + e.error.Error()
}

func (e *unreadable) Unwrap() error { return e.error }

// NonRecoverable is what the job master looks for.
func (e *unreadable) NonRecoverable() bool { return true }

// readsNothing tells whether a value can be written as no bytes at all.
func (r *reader[V]) readsNothing() bool {
	var v V
	_, err := r.Decode(nil, &v)
	return err == nil
}

// entryReader decodes the entries of maps.
type entryReader[MK comparable, V any] struct {
	keys   reader[MK]
	values reader[V]
	valid  func(MK) error
}

func (r *entryReader[MK, V]) as(stored snapshot.StateSchema, keys *codec.Key[MK], values *codec.Codec[V]) error {
	r.valid = keys.Valid
	return errors.Join(r.keys.as(stored.MapKey, keys.Codec()), r.values.as(stored.Value, values))
}

func (r *entryReader[MK, V]) read(src []byte) (k MK, v V, rest []byte, err error) {
	if src, err = r.keys.Decode(src, &k); err != nil {
		return k, v, nil, err
	}
	if err = r.valid(k); err != nil {
		return k, v, nil, err
	}
	rest, err = r.values.Decode(src, &v)
	return k, v, rest, err
}
