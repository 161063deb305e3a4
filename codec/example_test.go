package codec_test

import (
	"fmt"
	"time"

	"github.com/weirstream/weir/codec"
)

type Order struct {
	ID    int64
	Items map[string]int
	At    time.Time
	Note  *string
	cache int `weir:"-"`
}

func Example() {
	orders, err := codec.For[Order]()
	if err != nil {
		fmt.Println(err)
		return
	}
	data, err := orders.Append(nil, &Order{ID: 7, Items: map[string]int{"pen": 2, "ink": 1}, cache: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	var back Order
	rest, err := orders.Decode(data, &back)
	fmt.Println(back.ID, back.Items, back.At.IsZero(), len(rest), err)
	// Output: 7 map[ink:1 pen:2] true 0 <nil>
}

func ExampleFor_refused() {
	type Session struct {
		User  string
		since time.Time
	}
	s := Session{User: "ann", since: time.Now()}
	_, err := codec.For[Session]()
	fmt.Println(s.User, err)
	// Output: ann codec: codec_test.Session, field since (time.Time): it is unexported and would be lost; export it, tag it weir:"-", or give codec_test.Session the methods MarshalBinary and UnmarshalBinary
}

func ExampleCodec_Schema() {
	c, _ := codec.For[[]uint32]()
	fmt.Println(c.Schema())
	// Output: {"type":"array","items":{"type":"long","go":"uint32"}}
}

func ExampleKeyFor() {
	type Device struct {
		Site string
		Unit int32
	}
	keys, err := codec.KeyFor[Device]()
	if err != nil {
		fmt.Println(err)
		return
	}
	hash := keys.Hash(Device{"north", 4})
	fmt.Printf("%016x, key group %d\n", hash, hash>>49)
	// Output: e14d5b7184d4d144, key group 28838
}

func ExampleKeyFor_refused() {
	_, err := codec.KeyFor[time.Time]()
	fmt.Println(err)
	// Output: codec: time.Time: a time, whose == also compares location and clock reading, cannot be a key; use its UnixNano
}

func ExampleKey_HashAll() {
	keys, _ := codec.KeyFor[int32]()
	hashes := make([]uint64, 3)
	keys.HashAll(hashes, []int32{1, 2, 3})
	for _, h := range hashes {
		fmt.Printf("%016x\n", h)
	}
	// Output:
	// b456bcfc34c2cb2c
	// 3abf2a20650683e7
	// 0b5181c509f8d8ce
}
