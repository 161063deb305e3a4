package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// FileName is the name of the configuration file in a directory.
const FileName = "config.yaml"

// DirVariable is the environment variable that names the directory of the configuration file.
const DirVariable = "WEIR_CONF_DIR"

// Load is the configuration of this process: the file, then what the program's code set, then the command line.
//
// The file is the first that applies of --config, $WEIR_CONF_DIR/config.yaml and ./config.yaml. The first two must exist.
func Load(flags Flags, code Layer) (*Config, error) {
	file, found, err := readFile(flags.File)
	var bad *Error
	if err != nil && !errors.As(err, &bad) {
		return nil, err
	}
	c, err := Build(file, code, flags.Settings)
	err = merge(bad, err)
	if found && errors.As(err, &bad) {
		bad.Problems = append(bad.Problems, Problem{Text: "(" + FileName + " was read because it lies in the working directory; " +
			"--config FILE names another one, and --config " + os.DevNull + " none)"})
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// readFile reads the file that applies, if any; found: nobody named it, it lay in the working directory.
func readFile(named string) (l Layer, found bool, err error) {
	if named != "" {
		l, err = ReadFile(named)
		return l, false, err
	}
	if dir := os.Getenv(DirVariable); dir != "" {
		l, err = ReadFile(filepath.Join(dir, FileName))
		if err != nil {
			err = fmt.Errorf("%w (named by $%s)", err, DirVariable)
		}
		return l, false, err
	}
	l, err = ReadFile(FileName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return l, true, err
}

// ReadFile reads a configuration file.
func ReadFile(path string) (Layer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("weir: reading the configuration: %w", err)
	}
	return ParseFile(path, text)
}

// ParseFile reads the YAML text of a configuration file: a mapping from keys to single values. A key may be written whole,
// with dots, or as a nesting of its parts, or as a mixture of both.
func ParseFile(path string, text []byte) (Layer, error) {
	f, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, syntaxError(path, err)
	}
	w := walker{path: path, at: make(map[string]Origin)}
	for _, doc := range f.Docs {
		w.document(doc)
	}
	if len(w.problems) > 0 {
		return w.layer, &Error{Problems: w.problems}
	}
	return w.layer, nil
}

func syntaxError(path string, err error) error {
	at := Origin(path)
	var bad yaml.Error
	if errors.As(err, &bad) {
		if tok := bad.GetToken(); tok != nil && tok.Position != nil {
			at = Origin(fmt.Sprintf("%s:%d:%d", path, tok.Position.Line, tok.Position.Column))
		}
		return &Error{Problems: []Problem{{Text: bad.GetMessage(), Origin: at}}}
	}
	return &Error{Problems: []Problem{{Text: err.Error(), Origin: at}}}
}

// walker flattens a YAML tree.
type walker struct {
	path     string
	layer    Layer
	at       map[string]Origin // of the keys so far
	problems []Problem
}

func (w *walker) document(doc *ast.DocumentNode) {
	switch body := doc.Body.(type) {
	case nil, *ast.NullNode, *ast.CommentGroupNode:
	case *ast.MappingNode:
		w.mapping("", body)
	case *ast.MappingValueNode:
		w.entry("", body)
	default:
		w.problem("", body, `wants lines such as "parallelism.default: 4"`)
	}
}

func (w *walker) mapping(prefix string, m *ast.MappingNode) {
	for _, e := range m.Values {
		w.entry(prefix, e)
	}
}

// entry takes one "key: value", below the keys of prefix. Problems are located at the key.
func (w *walker) entry(prefix string, e *ast.MappingValueNode) {
	key := scalarText(e.Key)
	if prefix != "" {
		key = prefix + "." + key
	}
	switch v := e.Value.(type) {
	case *ast.MappingNode:
		w.mapping(key, v)
	case *ast.MappingValueNode:
		w.entry(key, v)
	case *ast.NullNode:
		// A heading whose lines are all commented out is nothing; an option without its value is a mistake.
		if !isPrefix(key) {
			w.problem(key, e.Key, "has no value")
		}
	case *ast.StringNode, *ast.LiteralNode, *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		if first, twice := w.at[key]; twice {
			w.problem(key, e.Key, fmt.Sprintf("is set twice; the first is %s", first))
			return
		}
		w.at[key] = w.origin(e.Key)
		w.layer.Set(key, scalarText(v), w.at[key])
	default:
		w.problem(key, e.Key, fmt.Sprintf("has a YAML %s; want one value", v.Type().YAMLName()))
	}
}

// scalarText is a scalar as it was written, without quotes: "010" and "1e3" keep their letters.
func scalarText(n ast.Node) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	}
	return n.GetToken().Value
}

func (w *walker) problem(key string, n ast.Node, text string) {
	w.problems = append(w.problems, Problem{Key: key, Text: text, Origin: w.origin(n)})
}

func (w *walker) origin(n ast.Node) Origin {
	p := n.GetToken().Position
	return Origin(fmt.Sprintf("%s:%d:%d", w.path, p.Line, p.Column))
}
