package lint

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// A sealed set is an interface with one unexported method without parameters and results, its marker, and the types of the
// same package that declare it (one that merely embeds a member is none). A type switch whose cases are
// all members of one set is taken for a switch over that set (without types there is nothing surer, and nothing else looks
// like it). It must name every member, unless it has a default that does something other than panic: that one says in so
// many words "and the others are nothing to me". Tests are free: a script or a simulation stops at what it did not expect.
//
// Where a type is a member of several sets, a switch that covers one of them is complete.

// sealedSet is one closed set.
type sealedSet struct {
	name    string          // "checkpoint.HandlerAction"
	members map[string]bool // "internal/checkpoint.Block"
}

// packageTypes is what a package declares of marked types.
type packageTypes struct {
	markers map[string]string          // interface -> marker
	having  map[string]map[string]bool // marker -> types that declare such a method
}

func checkSealedSwitches(t *Tree) (found []Finding) {
	sets := sealedSets(t)
	t.goFiles(false, func(f *File) {
		ast.Inspect(f.Go, func(n ast.Node) bool {
			s, ok := n.(*ast.TypeSwitchStmt)
			if !ok || isDeliberatelyPartial(s) {
				return true
			}
			if set, missing := uncovered(casesOf(f, s), sets); len(missing) > 0 {
				found = append(found, t.finding(s, "this switch over %s misses %s; handle it, or say in a default why the others do not matter",
					set.name, strings.Join(missing, ", ")))
			}
			return true
		})
	})
	return found
}

// uncovered is what a switch with these cases misses of the set that it is over; nil: nothing, or it is over none.
func uncovered(cases []string, sets []sealedSet) (over sealedSet, missing []string) {
	if len(cases) == 0 {
		return sealedSet{}, nil
	}
	for _, set := range sets {
		if slices.ContainsFunc(cases, func(c string) bool { return !set.members[c] }) {
			continue
		}
		var lacks []string
		for _, m := range slices.Sorted(maps.Keys(set.members)) {
			if !slices.Contains(cases, m) {
				lacks = append(lacks, m[strings.LastIndex(m, ".")+1:])
			}
		}
		if lacks == nil {
			return sealedSet{}, nil
		}
		if missing == nil || len(lacks) < len(missing) {
			over, missing = set, lacks
		}
	}
	return over, missing
}

// isDeliberatelyPartial is whether a switch has a default that does not begin with a panic.
func isDeliberatelyPartial(s *ast.TypeSwitchStmt) bool {
	for _, c := range s.Body.List {
		clause := c.(*ast.CaseClause)
		if clause.List != nil {
			continue
		}
		if len(clause.Body) == 0 {
			return true
		}
		call, ok := clause.Body[0].(*ast.ExprStmt)
		return !ok || !isPanic(call.X)
	}
	return false
}

func isPanic(x ast.Expr) bool {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	fn, ok := call.Fun.(*ast.Ident)
	return ok && fn.Name == "panic"
}

// casesOf are the types of a switch's cases, as "package.Name" with the package's directory. A nil case is none.
func casesOf(f *File, s *ast.TypeSwitchStmt) (cases []string) {
	for _, c := range s.Body.List {
		for _, x := range c.(*ast.CaseClause).List {
			if name := qualified(f, x); name != f.Dir()+".nil" {
				cases = append(cases, name)
			}
		}
	}
	return cases
}

func qualified(f *File, x ast.Expr) string {
	if star, ok := x.(*ast.StarExpr); ok {
		x = star.X
	}
	if index, ok := x.(*ast.IndexExpr); ok {
		x = index.X
	}
	sel, ok := x.(*ast.SelectorExpr)
	if !ok {
		return f.Dir() + "." + typeName(x)
	}
	pkg, _ := sel.X.(*ast.Ident)
	dir := ""
	f.Imports(func(_ *ast.ImportSpec, path string) {
		if to, ours := relative(path); ours && pkg != nil && f.localName(path) == pkg.Name {
			dir = to
		}
	})
	return dir + "." + sel.Sel.Name
}

func sealedSets(t *Tree) (sets []sealedSet) {
	packages := make(map[string]*packageTypes)
	t.goFiles(false, func(f *File) {
		p := packages[f.Dir()]
		if p == nil {
			p = &packageTypes{make(map[string]string), make(map[string]map[string]bool)}
			packages[f.Dir()] = p
		}
		p.collect(f.Go)
	})
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		p := packages[dir]
		for _, name := range slices.Sorted(maps.Keys(p.markers)) {
			set := sealedSet{name: dir[strings.LastIndex(dir, "/")+1:] + "." + name, members: make(map[string]bool)}
			for member := range p.having[p.markers[name]] {
				set.members[dir+"."+member] = true
			}
			if len(set.members) > 0 {
				sets = append(sets, set)
			}
		}
	}
	return sets
}

func (p *packageTypes) collect(f *ast.File) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil && isMarker(d.Name.Name, d.Type) {
				p.declare(d.Name.Name, typeName(d.Recv.List[0].Type))
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					p.collectInterface(s)
				}
			}
		}
	}
}

func (p *packageTypes) declare(marker, typ string) {
	if p.having[marker] == nil {
		p.having[marker] = make(map[string]bool)
	}
	p.having[marker][typ] = true
}

func (p *packageTypes) collectInterface(s *ast.TypeSpec) {
	x, ok := s.Type.(*ast.InterfaceType)
	if !ok || len(x.Methods.List) != 1 || len(x.Methods.List[0].Names) != 1 {
		return
	}
	name := x.Methods.List[0].Names[0].Name
	if fn, ok := x.Methods.List[0].Type.(*ast.FuncType); ok && isMarker(name, fn) {
		p.markers[s.Name.Name] = name
	}
}

func isMarker(name string, fn *ast.FuncType) bool {
	return !token.IsExported(name) && fn.Params.NumFields() == 0 && fn.Results.NumFields() == 0
}
