package state

import (
	"testing"

	"github.com/weirstream/weir/codec"
)

type (
	sale struct {
		ID    int64
		Lines []line
		Next  *line
	}
	line struct{ Text string }
	// purchase is sale under another name, with renamed parts.
	purchase struct {
		ID    int64
		Lines []item
		Next  *item
	}
	item struct{ Text string }
	// other has two types in the place of one.
	other struct {
		ID    int64
		Lines []item
		Next  *twin
	}
	twin struct{ Text string }
	// moved has another field.
	moved struct {
		Number int64
		Lines  []item
		Next   *item
	}
)

func schemaOf[T any](t testing.TB) string {
	c, err := codec.For[T]()
	must(t, err)
	return c.Schema()
}

