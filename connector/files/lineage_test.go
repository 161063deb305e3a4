package files

import "testing"

// FuzzLineage: any state of a sink's writer is one, or an error.
func FuzzLineage(f *testing.F) {
	state, err := (&lineage{Version: lineageVersion, Run: "0123456789ab", Next: 7}).encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(state)
	f.Add([]byte(`{"version":1,"run":"zz","next":-1}`))
	f.Fuzz(func(t *testing.T, state []byte) {
		l, err := decodeLineage(state)
		if (l == nil) == (err == nil) {
			t.Fatalf("%v, %v", l, err)
		}
		if err != nil {
			return
		}
		again, err := l.encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := decodeLineage(again); err != nil || *back != *l {
			t.Errorf("%+v became %+v, %v", l, back, err)
		}
	})
}
