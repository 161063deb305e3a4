package weirtest

import (
	"fmt"
	"testing"
)

// check is one thing that a conformance kit looks at.
type check struct {
	name string
	run  func(t testing.TB)
}

// run runs the checks as subtests.
func run(t *testing.T, checks []check) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.run(t) })
	}
}

// walks is how many random walks a kit takes.
const walks = 10

// walkName tells of a walk by its seed.
func walkName(seed uint64) string { return fmt.Sprint("random walk ", seed) }
