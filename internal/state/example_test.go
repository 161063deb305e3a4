package state_test

import (
	"bytes"
	"fmt"
	"io"
	"log"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/state"
)

// counts is the keyed state of an operator: a count for each word.
func counts(own base.KeyGroupRange) (*state.Keyed[string], *state.Value[int64]) {
	key, err := codec.KeyFor[string]()
	if err != nil {
		log.Fatal(err)
	}
	keyed, count := state.NewKeyed(key, own), &state.Value[int64]{}
	if err := count.Bind(keyed, state.Spec{Name: "count"}); err != nil {
		log.Fatal(err)
	}
	keyed.Open(func() int64 { return 0 })
	return keyed, count
}

func ExampleKeyed() {
	all := base.RangeOf(0, 1)
	keyed, count := counts(all)
	add := func(word string) {
		keyed.Seek(keyed.Hash(word), word) // word is the current key
		count.Set(count.Get() + 1)
		keyed.Settle()
	}
	add("a")
	add("b")
	add("a")

	s := keyed.Snapshot(1, 0) // now
	add("a")                  // is not in it
	var file bytes.Buffer
	if _, err := s.WriteTo(&file); err != nil { // by any goroutine
		log.Fatal(err)
	}
	s.Release() // the owner again

	restored, count := counts(all)
	from := state.RestoreFile{
		Handle: snapshot.KeyedHandle{Range: all, Handle: snapshot.InlineHandle(file.Bytes())},
		Open:   func(h snapshot.Handle) (io.ReaderAt, error) { return bytes.NewReader(h.Inline), nil },
	}
	if err := restored.Restore(from, all); err != nil {
		log.Fatal(err)
	}
	for _, word := range []string{"a", "b", "c"} {
		restored.Seek(restored.Hash(word), word)
		fmt.Println(word, count.Get())
	}
	// Output:
	// a 2
	// b 1
	// c 0
}
