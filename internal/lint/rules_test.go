package lint

import (
	"fmt"
	"go/token"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// parse makes a tree of a text archive.
func parse(t *testing.T, archive string) *Tree {
	t.Helper()
	tree := &Tree{fset: token.NewFileSet()}
	for _, f := range txtar.Parse([]byte(archive)).Files {
		if err := tree.add(f.Name, f.Data); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

// cases are the rules' own tests: an archive, and the places in it that break the rule.
var cases = []struct {
	rule, name, archive string
	want                []string // "path:line part of the text"
}{
	{"floors", "down", `
-- internal/task/a.go --
package task
import "github.com/weirstream/weir/internal/base"
-- weir.go --
package weir
import "github.com/weirstream/weir/internal/cluster"
-- internal/state/heap/a.go --
package heap
import "github.com/weirstream/weir/internal/state"
`, nil},
	{"floors", "up", `
-- internal/base/a.go --
package base
import "github.com/weirstream/weir/codec"
-- internal/cluster/a.go --
package cluster
import "github.com/weirstream/weir"
`, []string{"internal/base/a.go:2 internal/base must not import codec: imports only go down", "internal/cluster/a.go:2 must not import .: imports only go down"}},
	{"floors", "sideways", `
-- internal/rpc/a.go --
package rpc
import "github.com/weirstream/weir/internal/config"
`, []string{"internal/rpc/a.go:2 they are on one floor"}},
	{"floors", "tests stand anywhere", `
-- internal/base/a_test.go --
package base
import "github.com/weirstream/weir/weirtest"
`, nil},
	{"floors", "a command", `
-- examples/x/a.go --
package main
import "github.com/weirstream/weir/cmd/weir"
`, []string{"examples/x/a.go:2 nothing imports a command"}},
	{"floors", "a connector", `
-- connector/file/a.go --
package file
import (
	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/task"
)
`, []string{"connector/file/a.go:5 a connector imports only"}},
	{"floors", "the exchange", `
-- internal/exchange/a.go --
package exchange
import "github.com/weirstream/weir/codec"
`, []string{"internal/exchange/a.go:2 the exchange sees a batch as"}},
	{"floors", "unknown", `
-- internal/util/a.go --
package util
-- internal/task/a.go --
package task
import "github.com/weirstream/weir/internal/util"
`, []string{"internal/util/a.go:1 package internal/util has no floor", "internal/task/a.go:2 it has no floor"}},

	{"purity", "pure", `
-- internal/job/a.go --
package job
import ("time"; "sort"; "osmosis")
var d = time.Second
-- internal/job/a_test.go --
package job
import "os"
-- internal/task/a.go --
package task
import ("os"; "time")
var now = time.Now()
`, nil},
	{"purity", "impure", `
-- internal/job/a.go --
package job
import (
	clock "time"
	"log/slog"
	"sync"
)
var now = clock.Now()
func startX() {
	go startX()
}
`, []string{"a.go:4 internal/job is pure: it does not import \"log/slog\"", "a.go:5 \"sync\"", "a.go:7 no time.Now", "a.go:9 it starts no goroutine"}},

	{"environment", "elsewhere", `
-- internal/config/a.go --
package config
import "os"
var home = os.Getenv("HOME")
-- internal/task/a.go --
package task
import "os"
var home, args = os.Getenv("HOME"), os.Args
`, []string{"internal/task/a.go:3 no os.Getenv here"}},

	{"doc.go", "missing", `
-- internal/task/doc.go --
// Package task has one.
package task
-- internal/task/a.go --
package task
-- internal/state/doc.go --
package state
-- internal/rpc/a.go --
// Package rpc has it elsewhere.
package rpc
-- internal/rest/a_test.go --
package rest
`, []string{"internal/state/doc.go:1 package state has no doc.go", "internal/rpc/a.go:2 package rpc has no doc.go"}},

	{"docstrings", "present", `
-- a.go --
package weir
// A is one.
type A struct{ Field int }
// M is a method.
func (*A) M() {}
func (*A) String() string { return "" }
func (*A) m() {}
type b struct{}
func (b) M() {}
// Enum is a list.
type Enum int
const (
	One Enum = iota
	Two
)
// Both are variables.
var (
	V, W int
)
const (
	X = 1 // is one
	y = 2
)
const ()
-- a_test.go --
package weir
func TestX() {}
`, nil},
	{"docstrings", "missing", `
-- a.go --
package weir
type A[T any] struct{}
func (*A[T]) M() {}
func F() {}
var V int
const (
	X = 1
)
`, []string{"a.go:2 A has no docstring", "a.go:3 M has", "a.go:4 F has", "a.go:5 V has", "a.go:7 X has"}},

	{"sealed switches", "complete or partial on purpose", sealedArchive + `
-- internal/job/b.go --
package job
import c "github.com/weirstream/weir/internal/checkpoint"
func full(e c.Event) {
	switch e.(type) {
	case nil:
	case c.A, *c.B:
	case c.C[int]:
	default:
		panic("unknown")
	}
}
func partial(e c.Event) {
	switch e.(type) {
	case c.A:
	default: // the others do not matter
	}
}
func other(e any) {
	switch e.(type) {
	case c.A, string:
	}
}
func overlapping(a c.Action) {
	switch a.(type) {
	case c.A:
	}
}
`, nil},
	{"sealed switches", "incomplete", sealedArchive + `
-- internal/checkpoint/b.go --
package checkpoint
func f(e Event) {
	switch e := e.(type) {
	case A:
	case C[int]:
	}
	switch e.(type) {
	case *B:
	default:
		panic("unknown")
	}
}
-- internal/job/b.go --
package job
import "github.com/weirstream/weir/internal/checkpoint"
func f(e checkpoint.Event) {
	switch e.(type) {
	case checkpoint.A, *checkpoint.B:
	}
}
-- internal/job/b_test.go --
package job
import "github.com/weirstream/weir/internal/checkpoint"
func g(e checkpoint.Event) {
	switch e.(type) {
	case checkpoint.A:
	}
}
`, []string{"internal/checkpoint/b.go:3 this switch over checkpoint.Event misses B", "internal/checkpoint/b.go:7 misses A, C", "internal/job/b.go:4 misses C"}},

	{"goroutines", "named", `
-- a.go --
package weir
func Run() { go f() }
func runLoop() { go f() }
func (t *T) startUpload() { func() { go f() }() }
func start() { go f() }
-- a_test.go --
package weir
func TestX() { go f() }
`, nil},
	{"goroutines", "unnamed", `
-- a.go --
package weir
func runes() { go f() }
func Open() {
	func() {
		go f()
	}()
}
var x = func() { go f() }
`, []string{"a.go:2 a goroutine starts in runes", "a.go:5 starts in Open", "a.go:8 starts in a variable"}},

	{"sleeps", "asleep", `
-- a_test.go --
package weir
import "time"
func TestX() { time.Sleep(1) }
-- b_test.go --
package weir
import ("time"; "testing/synctest")
func TestY() { synctest.Test(func() { time.Sleep(1) }) }
-- b.go --
package weir
import "time"
func wait() { time.Sleep(1) }
`, []string{"a_test.go:3 a test sleeps"}},

	{"words", "telling", `
-- README.md --
A session cluster has helpers.
See /work` + `/notes.
-- internal/base/testdata/a.txt --
As Flink-` + `Behaviour says.
-- a.go --
package weir // fixes issue` + ` #12
`, []string{"README.md:2 tells of the place", "internal/base/testdata/a.txt:1 tells", "a.go:1 tells"}},
}

const sealedArchive = `
-- internal/checkpoint/a.go --
package checkpoint
type Event interface{ event() }
type Action interface{ action() }
type A struct{}
type B struct{}
type C[T any] struct{}
type d struct{ B }
func (A) event() {}
func (A) action() {}
func (*B) event() {}
func (C[T]) event() {}
`

func TestRules(t *testing.T) {
	tested := make(map[string]bool)
	for _, c := range cases {
		t.Run(c.rule+"/"+c.name, func(t *testing.T) {
			i := slices.IndexFunc(Rules, func(r Rule) bool { return r.Name == c.rule })
			found := Rules[i].Check(parse(t, c.archive))
			tested[c.rule] = tested[c.rule] || len(found) > 0
			if len(found) != len(c.want) {
				t.Fatalf("got %d findings %v, want %q", len(found), found, c.want)
			}
			for i, want := range c.want {
				at, text, _ := strings.Cut(want, " ")
				if !strings.HasSuffix(found[i].At, at) || !strings.Contains(fmt.Sprint(found[i]), text) {
					t.Errorf("got %v, want %q", found[i], want)
				}
			}
		})
	}
	for _, r := range Rules {
		if !tested[r.Name] {
			t.Errorf("no case breaks the rule %q", r.Name)
		}
	}
}

func TestBinaryFilesArePassedOver(t *testing.T) {
	tree := &Tree{fset: token.NewFileSet()}
	if err := tree.add("a.bin", []byte("a\x00b")); err != nil || len(tree.Files) != 0 {
		t.Errorf("%v %v", err, tree.Files)
	}
}
