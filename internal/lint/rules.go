package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// Rule is one thing that holds for the whole tree.
type Rule struct {
	Name  string
	Check func(*Tree) []Finding
}

// Rules are all rules.
var Rules = []Rule{
	{"floors", checkFloors},
	{"purity", checkPurity},
	{"environment", checkEnvironment},
	{"doc.go", checkDocFiles},
	{"docstrings", checkDocstrings},
	{"sealed switches", checkSealedSwitches},
	{"goroutines", checkGoroutines},
	{"sleeps", checkSleeps},
	{"words", checkWords},
}

// ---- what pure packages leave alone

var impureImports = []string{"net", "os", "sync", "context", "log"}

var clockReaders = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer"}

func checkPurity(t *Tree) (found []Finding) {
	t.goFiles(false, func(f *File) {
		if !isPure(f.Dir()) {
			return
		}
		f.Imports(func(spec *ast.ImportSpec, path string) {
			top, _, _ := strings.Cut(path, "/")
			if slices.Contains(impureImports, top) {
				found = append(found, t.finding(spec, "%s is pure: it does not import %q; events and actions carry what it needs from outside", f.Dir(), path))
			}
		})
		f.calls("time", clockReaders, func(at ast.Node, name string) {
			found = append(found, t.finding(at, "%s is pure: no %s; take the time as an argument", f.Dir(), name))
		})
		ast.Inspect(f.Go, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				found = append(found, t.finding(g, "%s is pure: it starts no goroutine; return an action that its driver performs", f.Dir()))
			}
			return true
		})
	})
	return found
}

// ---- the environment

func checkEnvironment(t *Tree) (found []Finding) {
	t.goFiles(false, func(f *File) {
		if f.Dir() == "internal/config" {
			return
		}
		f.calls("os", []string{"Getenv", "LookupEnv", "ExpandEnv"}, func(at ast.Node, name string) {
			found = append(found, t.finding(at, "no %s here: only internal/config reads the environment; ask it", name))
		})
	})
	return found
}

// ---- documentation

func checkDocFiles(t *Tree) (found []Finding) {
	has := make(map[string]bool)
	first := make(map[string]*File)
	t.goFiles(false, func(f *File) {
		if first[f.Dir()] == nil {
			first[f.Dir()] = f
		}
		if strings.HasSuffix("/"+f.Path, "/doc.go") && f.Go.Doc != nil {
			has[f.Dir()] = true
		}
	})
	t.goFiles(false, func(f *File) {
		if f == first[f.Dir()] && !has[f.Dir()] {
			found = append(found, t.finding(f.Go.Name, "package %s has no doc.go with a package comment: what it hides, its nouns, invariants and goroutines", f.Go.Name.Name))
		}
	})
	return found
}

// selfEvident are methods whose name is their whole documentation, because the standard library defines them.
var selfEvident = []string{"String", "Error", "Unwrap", "Is"}

func checkDocstrings(t *Tree) (found []Finding) {
	missing := func(name *ast.Ident) {
		if name.IsExported() {
			found = append(found, t.finding(name, "%s has no docstring: a sentence, with units, callers and errors where they matter", name.Name))
		}
	}
	t.goFiles(false, func(f *File) {
		for _, d := range f.Go.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Doc == nil && isReachable(d) {
					missing(d.Name)
				}
			case *ast.GenDecl:
				undocumented(d, missing)
			}
		}
	})
	return found
}

// isReachable is whether a function or method can be named from outside, and is not self-evident.
func isReachable(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	return ast.IsExported(typeName(d.Recv.List[0].Type)) && !slices.Contains(selfEvident, d.Name.Name)
}

// undocumented calls missing with the names of a declaration that no comment is about. A comment above a group is about all
// of it, and a group that begins with a value of a named type is a list of that type's values: the type has the comment.
func undocumented(d *ast.GenDecl, missing func(*ast.Ident)) {
	if d.Lparen.IsValid() && (d.Doc != nil || isList(d)) {
		return
	}
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Doc == nil && d.Doc == nil {
				missing(s.Name)
			}
		case *ast.ValueSpec:
			if s.Doc == nil && s.Comment == nil && d.Doc == nil {
				for _, name := range s.Names {
					missing(name)
				}
			}
		}
	}
}

// isList is whether a group of constants enumerates the values of a type that it names first.
func isList(d *ast.GenDecl) bool {
	if d.Tok != token.CONST || len(d.Specs) == 0 {
		return false
	}
	first := d.Specs[0].(*ast.ValueSpec)
	typ, ok := first.Type.(*ast.Ident)
	return ok && typ.IsExported()
}

// typeName is the name of a type as a receiver or a case has it: without star, type arguments and package.
func typeName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.ParenExpr:
		return typeName(x.X)
	case *ast.IndexExpr:
		return typeName(x.X)
	case *ast.IndexListExpr:
		return typeName(x.X)
	}
	return ""
}

// ---- goroutines and sleeps

var startsGoroutines = regexp.MustCompile(`^([sS]tart|[rR]un)([^a-z]|$)`)

func checkGoroutines(t *Tree) (found []Finding) {
	t.goFiles(false, func(f *File) {
		for _, d := range f.Go.Decls {
			name := "a variable"
			if fn, ok := d.(*ast.FuncDecl); ok {
				name = fn.Name.Name
			}
			if startsGoroutines.MatchString(name) {
				continue
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if g, ok := n.(*ast.GoStmt); ok {
					found = append(found, t.finding(g, "a goroutine starts in %s; start it in a function named startX or runX whose comment names its owner and its end", name))
				}
				return true
			})
		}
	})
	return found
}

// checkSleeps refuses sleeps in tests that wait for something. One that is what is tested, such as slow user code, says so in a
// comment on its line.
func checkSleeps(t *Tree) (found []Finding) {
	t.goFiles(true, func(f *File) {
		if !f.IsTest() || f.localName("testing/synctest") != "" {
			return
		}
		f.calls("time", []string{"Sleep"}, func(at ast.Node, _ string) {
			if t.commented(f, at) {
				return
			}
			found = append(found, t.finding(at, "a test sleeps; wait for the event itself (a channel, a condition), or run in a bubble of testing/synctest; if it stands for slow user code, say so behind it"))
		})
	})
	return found
}

// commented is true where a comment ends the line of a node.
func (t *Tree) commented(f *File, at ast.Node) bool {
	line := t.fset.Position(at.Pos()).Line
	return slices.ContainsFunc(f.Go.Comments, func(c *ast.CommentGroup) bool {
		return t.fset.Position(c.Pos()).Line == line
	})
}

// ---- words

// telling are words that tell of the place where the code was written instead of what it does. They are put together here so
// that this file does not hold them itself.
var telling = regexp.MustCompile(`(?i)(` + strings.Join([]string{
	`/work` + `/`,
	`\bwork` + `place\b`,
	`\b(last|next|our|previous|helper) sess` + `ion\b`,
	`\bhelper'?s? (rep` + `ort|br` + `ief)\b`,
	`flink-` + `behaviour`,
	`shared/` + `(design|protocol|api|style|cases|tools)\.md`,
	`\b(contracts|common)` + `\.md\b`,
	`\bissue` + ` #?[0-9]+\b`,
	`\bclau` + `de\b`, `\banthro` + `pic\b`,
}, `|`) + `)`)

func checkWords(t *Tree) (found []Finding) {
	for _, f := range t.Files {
		for i, line := range strings.Split(string(f.Text), "\n") {
			if word := telling.FindString(line); word != "" {
				found = append(found, Finding{
					At:   fmt.Sprintf("%s:%d", f.Path, i+1),
					Text: fmt.Sprintf("%q tells of the place where this was written; say what the code does", word),
				})
			}
		}
	}
	return found
}
