package lint

import (
	"go/ast"
	"strings"
)

// floor is a line of the house: packages that import only what lies below it, and not each other.
type floor struct {
	pure     bool
	packages []string // relative to the module; "." is its root; "x/..." is x and all below it
}

// floors is the house from its roof to its ground. A new package needs a place in it and an answer to "what does it hide?";
// there is no util, common, helper or types.
var floors = []floor{
	{packages: []string{"cmd/...", "examples/...", "internal/bench", "internal/trial", "bench/...", "testflink"}},
	{packages: []string{"connector/..."}},
	{packages: []string{"weirtest"}},
	{packages: []string{"."}},
	{packages: []string{"internal/cluster"}},
	{packages: []string{"internal/rest"}},
	{packages: []string{"internal/jobmaster"}},
	{packages: []string{"internal/worker"}},
	{packages: []string{"internal/task"}},
	{packages: []string{"internal/operator"}},
	{packages: []string{"internal/exchange"}},
	{packages: []string{"internal/inspect"}},
	{packages: []string{"internal/state/..."}},
	{packages: []string{"internal/storage/..."}},
	{packages: []string{"internal/rpc", "internal/config", "internal/metrics", "internal/ha", "internal/pace"}},
	{pure: true, packages: []string{"internal/job", "internal/stats"}},
	{pure: true, packages: []string{"internal/checkpoint"}},
	{pure: true, packages: []string{"internal/graph"}},
	{pure: true, packages: []string{"internal/fit"}},
	{pure: true, packages: []string{"internal/snapshot"}},
	{pure: true, packages: []string{"window", "codec", "internal/avrofile"}},
	{pure: true, packages: []string{"internal/base"}},
	{packages: []string{"internal/lint"}},
}

// ban forbids an edge that the floors would allow.
type ban struct {
	from, to string // as in floor.packages
	why      string
}

var bans = []ban{
	{"internal/exchange", "codec", "the exchange sees a batch as a length, bytes and a release; the operator's edge knows its type"},
	{"internal/exchange", "internal/state/...", "the exchange moves records; who keeps them is the operator's business"},
	{"internal/state/...", "internal/config", "state is told what to do by who opens it"},
	{"internal/storage/...", "internal/config", "storage is told what to do by who opens it"},
}

// connectorImports are all that a connector may import of this module: what anybody's own connector could import, the file
// systems, and the pace of those that can be slowed down.
var connectorImports = []string{".", "codec", "internal/storage/...", "internal/pace", "connector/..."}

// within is whether a package is one that a pattern names.
func within(pattern, pkg string) bool {
	if top, all := strings.CutSuffix(pattern, "/..."); all {
		return pkg == top || strings.HasPrefix(pkg, top+"/")
	}
	return pkg == pattern
}

// floorOf is the number of a package's floor, counted from the roof, and the pattern that named it; -1: it has none.
func floorOf(pkg string) (int, string) {
	for i, f := range floors {
		for _, p := range f.packages {
			if within(p, pkg) {
				return i, p
			}
		}
	}
	return -1, ""
}

func isPure(pkg string) bool {
	i, _ := floorOf(pkg)
	return i >= 0 && floors[i].pure
}

// checkFloors looks at all imports outside of tests: a test may stand on any floor.
func checkFloors(t *Tree) (found []Finding) {
	t.goFiles(false, func(f *File) {
		if i, _ := floorOf(f.Dir()); i < 0 {
			found = append(found, t.finding(f.Go.Name, "package %s has no floor: give it a line in internal/lint/floors.go, and say what it hides", f.Dir()))
			return
		}
		f.Imports(func(spec *ast.ImportSpec, path string) {
			to, ours := relative(path)
			if !ours {
				return
			}
			if why := forbidden(f.Dir(), to); why != "" {
				found = append(found, t.finding(spec, "%s must not import %s: %s", f.Dir(), to, why))
			}
		})
	})
	return found
}

// relative is an import path as a package of this module, if it is one.
func relative(path string) (pkg string, ours bool) {
	if path == Module {
		return ".", true
	}
	return strings.CutPrefix(path, Module+"/")
}

// forbidden is why one package must not import another; "": it may.
func forbidden(from, to string) string {
	for _, b := range bans {
		if within(b.from, from) && within(b.to, to) {
			return b.why
		}
	}
	if within("connector/...", from) && !anyWithin(connectorImports, to) {
		return "a connector imports only package weir, codec, internal/storage and internal/pace, so that anybody can write one"
	}
	up, upper := floorOf(from)
	down, lower := floorOf(to)
	switch {
	case within("cmd/...", to) || within("internal/lint", to):
		return "nothing imports a command or the lint"
	case down < 0:
		return "it has no floor"
	case down < up:
		return "imports only go down; move what is needed to the lower floor, or pass it in from above"
	case down == up && upper != lower:
		return "they are on one floor; what both need lies below them"
	}
	return ""
}

func anyWithin(patterns []string, pkg string) bool {
	for _, p := range patterns {
		if within(p, pkg) {
			return true
		}
	}
	return false
}
