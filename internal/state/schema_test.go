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

// Types may be renamed and moved between packages; fields may not be renamed.
func TestNamesOfTypesAreNotCompared(t *testing.T) {
	stored := schemaOf[sale](t)
	for name, c := range map[string]struct {
		schema string
		same   bool
	}{
		"itself":        {stored, true},
		"renamed":       {schemaOf[purchase](t), true},
		"renamed field": {schemaOf[moved](t), false},
		"split in two":  {schemaOf[other](t), false}, // the bytes would do; it is refused for simplicity
		"another type":  {schemaOf[int64](t), false},
		"no schema":     {"{", false},
		"empty":         {"", false},
	} {
		if got := sameAvro(stored, c.schema); got != c.same {
			t.Errorf("%s: %v\n%s\n%s", name, got, stored, c.schema)
		}
	}
}
