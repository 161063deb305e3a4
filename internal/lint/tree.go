package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Module is the path of the module that the rules are about.
const Module = "github.com/weirstream/weir"

// Tree is the source of a module.
type Tree struct {
	// Files are all text files, ordered by path.
	Files []*File

	fset *token.FileSet
}

// File is a text file of a module.
type File struct {
	// Path is relative to the module's root, with slashes.
	Path string
	Text []byte
	// Go is the syntax of a Go file; nil: it is none, or lies in a testdata directory.
	Go *ast.File
}

// Dir is the package that f belongs to, as a path relative to the module's root; "." is the root.
func (f *File) Dir() string { return path.Dir(f.Path) }

// IsTest is whether f is a test's.
func (f *File) IsTest() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Imports calls yield with the path of each import of f.
func (f *File) Imports(yield func(spec *ast.ImportSpec, path string)) {
	for _, spec := range f.Go.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			yield(spec, p)
		}
	}
}

// Finding is one place that breaks a rule.
type Finding struct {
	At   string // path:line
	Text string
}

func (f Finding) String() string { return f.At + ": " + f.Text }

// Read reads the module whose root directory this is.
func Read(root string) (*Tree, error) {
	t := &Tree{fset: token.NewFileSet()}
	return t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && isForeign(d.Name()):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		return t.add(filepath.ToSlash(rel), text)
	})
}

// isForeign is whether a directory holds no source of the repository's: Git's own, and what .gitignore names.
func isForeign(dir string) bool {
	return dir == ".git" || dir == ".demo" || dir == "bin"
}

// add takes a file into the tree. Binary files are passed over.
func (t *Tree) add(name string, text []byte) error {
	if bytes.IndexByte(text, 0) >= 0 {
		return nil
	}
	f := &File{Path: name, Text: text}
	if strings.HasSuffix(name, ".go") && !strings.Contains("/"+name, "/testdata/") {
		syntax, err := parser.ParseFile(t.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		f.Go = syntax
	}
	t.Files = append(t.Files, f)
	return nil
}

// goFiles calls yield with each Go file; tests: also with those of tests.
func (t *Tree) goFiles(tests bool, yield func(*File)) {
	for _, f := range t.Files {
		if f.Go != nil && (tests || !f.IsTest()) {
			yield(f)
		}
	}
}

// finding is a Finding at a node.
func (t *Tree) finding(at ast.Node, format string, args ...any) Finding {
	p := t.fset.Position(at.Pos())
	return Finding{At: fmt.Sprintf("%s:%d", p.Filename, p.Line), Text: fmt.Sprintf(format, args...)}
}

// calls finds the uses of names that are selected from a package, such as time.Sleep; yield gets them as "time.Sleep".
func (f *File) calls(pkg string, names []string, yield func(at ast.Node, name string)) {
	local := f.localName(pkg)
	if local == "" {
		return
	}
	ast.Inspect(f.Go, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == local {
			for _, name := range names {
				if sel.Sel.Name == name {
					yield(sel, path.Base(pkg)+"."+name)
				}
			}
		}
		return true
	})
}

// localName is how f names an imported package; "": it does not import it.
func (f *File) localName(pkg string) (name string) {
	f.Imports(func(spec *ast.ImportSpec, p string) {
		if p != pkg {
			return
		}
		name = path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
	})
	return name
}
