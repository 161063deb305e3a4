package files

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/codec"
)

// stateVersion is the first byte of an enumerator's state. Behind it lies an enumeratorState in the bytes of package codec,
// and not as JSON, which would not keep the bytes of a path that is not UTF-8.
const stateVersion = 1

// enumeratorState is what an enumerator knows, as a checkpoint stores it.
type enumeratorState struct {
	// Found says that the files were looked for.
	Found bool
	// Pending are the splits that no reader has been given.
	Pending []Split
	// Seen are the paths of the last look of an unbounded source, ascending.
	Seen []string
}

var stateCodec = mustCodec[enumeratorState]()

func mustCodec[T any]() *codec.Codec[T] {
	c, err := codec.For[T]()
	if err != nil {
		panic(err) // the type is of this package: a test would have found it
	}
	return c
}

func (e *enumerator) Snapshot(int64) ([]byte, error) {
	s := enumeratorState{Found: e.found, Pending: e.pending, Seen: slices.Sorted(maps.Keys(e.seen))}
	return stateCodec.Append([]byte{stateVersion}, &s)
}

// restore takes over a state. What it cannot read no restart will change.
func (e *enumerator) restore(state []byte) error {
	return weir.NonRecoverable(e.read(state))
}

func (e *enumerator) read(state []byte) error {
	var s enumeratorState
	if len(state) == 0 || state[0] != stateVersion {
		return fmt.Errorf("files: the state of the found files, %.16q, is not of version %d: "+
			"restore it with the version of Weir that wrote it, or a newer one; a source that takes another's place needs a UID of its own", state, stateVersion)
	}
	rest, err := stateCodec.Decode(state[1:], &s)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes too many", len(rest))
	}
	if err != nil {
		return fmt.Errorf("files: reading the state of the found files: %w", err)
	}
	for i := range s.Pending {
		if err := s.Pending[i].check(); err != nil {
			return err
		}
	}
	e.found, e.pending, e.seen = s.Found, s.Pending, map[string]bool{}
	for _, path := range s.Seen {
		e.seen[path] = true
	}
	return nil
}
