package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

// A node is what a schema says of a type: a graph with the same cycles. It is parsed from the text of a schema, as Weir
// writes them and as far as other writers keep to the same subset of Avro, or derived from a shape, which it then carries.
type node struct {
	kind    nodeKind
	name    string // of a record, a fixed, an opaque type
	logical string // "timestamp-nanos", or nothing
	narrow  string // of an integer the kind of Go, of an opaque type its pair of methods, where the schema says it
	size    int    // of a fixed
	length  int    // of an array
	elem    *node  // of an array; what is beside null in a union
	fields  []nodeField
	shape   *shape // nil: known by its schema alone
}

type nodeField struct {
	name    string
	aliases []string
	node    *node
	offset  uintptr // where the node has a shape
}

// nodeKind is a type of Avro; a union is always of null and one more.
type nodeKind uint8

const (
	nodeBoolean nodeKind = iota + 1
	nodeInt
	nodeLong
	nodeFloat
	nodeDouble
	nodeString
	nodeBytes
	nodeFixed
	nodeArray
	nodeUnion
	nodeRecord
)

var nodeNames = map[string]nodeKind{"boolean": nodeBoolean, "int": nodeInt, "long": nodeLong, "float": nodeFloat,
	"double": nodeDouble, "string": nodeString, "bytes": nodeBytes}

// The names of an entry's fields. A field of Go that is written has a name with a capital, or "_u" for a letter beyond ASCII.
const (
	entryKey   = "key"
	entryValue = "value"
)

// isEntry tells whether n is a record that stands for an entry of a map.
func (n *node) isEntry() bool {
	return n.kind == nodeRecord && len(n.fields) == 2 && n.fields[0].name == entryKey && n.fields[1].name == entryValue
}

// isMap tells whether n is a map: an array of entries.
func (n *node) isMap() bool { return n.kind == nodeArray && n.elem.isEntry() }

// String names the type for people.
func (n *node) String() string {
	switch n.kind {
	case nodeFixed:
		if n.name == "weir.uint64" {
			return "uint64"
		}
		return fmt.Sprintf("%d bytes", n.size)
	case nodeRecord:
		return n.name[strings.LastIndexByte(n.name, '.')+1:]
	case nodeUnion:
		return "optional " + n.elem.String()
	case nodeArray:
		switch {
		case n.isMap():
			return fmt.Sprintf("map of %v to %v", n.elem.fields[0].node, n.elem.fields[1].node)
		case n.length != anyLength:
			return fmt.Sprintf("array of %d %v", n.length, n.elem)
		}
		return "list of " + n.elem.String()
	case nodeBytes:
		if n.narrow != "" {
			return fmt.Sprintf("%s in %s form", n.name[strings.LastIndexByte(n.name, '.')+1:], n.narrow)
		}
	case nodeInt, nodeLong:
		if n.narrow != "" {
			return n.narrow
		}
	}
	if n.logical != "" {
		return "time"
	}
	for name, kind := range nodeNames {
		if kind == n.kind {
			return name
		}
	}
	return "unknown"
}

// least is the number of bytes that every value of n has at least. Cycles pass through unions and arrays.
func (n *node) least() int {
	switch n.kind {
	case nodeFloat:
		return 4
	case nodeDouble:
		return 8
	case nodeFixed:
		return n.size
	case nodeRecord:
		sum := 0
		for _, f := range n.fields {
			sum = min(sum+f.node.least(), math.MaxInt32)
		}
		return sum
	}
	return 1
}

// skip passes over a value of n, and gives the position behind it.
func (n *node) skip(src []byte, at, depth int) (_ int, err error) {
	if depth >= nestingMax {
		return at, errNesting
	}
	switch n.kind {
	case nodeInt, nodeLong:
		_, at, err = long(src, at)
		return at, err
	case nodeString, nodeBytes:
		_, at, err = span(src, at)
		return at, err
	case nodeBoolean, nodeFloat, nodeDouble, nodeFixed:
		size := n.least()
		if size > len(src)-at {
			return at, errShort
		}
		return at + size, nil
	case nodeUnion:
		branch, at, err := long(src, at)
		if err != nil || branch == 0 {
			return at, err
		}
		if branch != 1 {
			return at, fmt.Errorf("branch %d of a union of two", branch)
		}
		return n.elem.skip(src, at, depth+1)
	case nodeRecord:
		for _, f := range n.fields {
			if at, err = f.node.skip(src, at, depth+1); err != nil {
				return at, inside(f.name, err)
			}
		}
		return at, nil
	}
	return n.skipArray(src, at, depth+1)
}

func (n *node) skipArray(src []byte, at, depth int) (int, error) {
	m := operand{least: n.elem.least()}
	for done := 0; ; {
		count, next, err := m.block(src, at)
		if at = next; count == 0 || err != nil {
			return at, err
		}
		if m.least == 0 {
			continue
		}
		for ; count > 0; count-- {
			if at, err = n.elem.skip(src, at, depth); err != nil {
				return at, inElement(done, err)
			}
			done++
		}
	}
}

// parse makes the node of a schema's text.
func parse(schema string) (*node, error) {
	var text any
	if err := json.Unmarshal([]byte(schema), &text); err != nil {
		return nil, fmt.Errorf("codec: this is no schema: %w", err)
	}
	p := parser{named: map[string]*node{}}
	n, err := p.node(text, 0)
	if err == nil {
		err = (&sizer{weights: map[*node]int{}}).check(n)
	}
	if err != nil {
		return nil, fmt.Errorf("codec: in the schema %.200s: %w", schema, err)
	}
	return n, nil
}

type parser struct{ named map[string]*node }

// schemaNestingMax bounds the recursion over the text of a schema.
const schemaNestingMax = 1000

func (p *parser) node(text any, depth int) (*node, error) {
	if depth > schemaNestingMax {
		return nil, errors.New("it is nested too deep")
	}
	switch t := text.(type) {
	case string:
		if kind, ok := nodeNames[t]; ok {
			return &node{kind: kind}, nil
		}
		if n := p.named[t]; n != nil {
			return n, nil
		}
		return nil, fmt.Errorf("there is no type %q", t)
	case []any:
		if len(t) != 2 || t[0] != "null" {
			return nil, errors.New("a union can only be of null and one more type")
		}
		elem, err := p.node(t[1], depth+1)
		return &node{kind: nodeUnion, elem: elem}, err
	case map[string]any:
		return p.definition(t, depth)
	}
	return nil, fmt.Errorf("%v is no type", text)
}

func (p *parser) definition(t map[string]any, depth int) (*node, error) {
	name, _ := t["name"].(string)
	switch kind, _ := t["type"].(string); kind {
	case "array":
		n := &node{kind: nodeArray}
		err := n.setLength(t["length"])
		if err == nil {
			n.elem, err = p.node(t["items"], depth+1)
		}
		return n, err
	case "fixed":
		size, ok := t["size"].(float64)
		if !ok || size < 0 || size > math.MaxInt32 {
			return nil, fmt.Errorf("the fixed %q has no size", name)
		}
		n := &node{kind: nodeFixed, name: name, size: int(size)}
		p.named[name] = n
		return n, nil
	case "record":
		return p.record(t, name, depth)
	default:
		n, err := p.node(t["type"], depth+1)
		if err != nil {
			return nil, err
		}
		if n.kind == nodeLong {
			n.logical, _ = t["logicalType"].(string)
		}
		if text, ok := t["go"].(string); ok {
			n.setGo(text)
		}
		return n, nil
	}
}

func (p *parser) record(t map[string]any, name string, depth int) (*node, error) {
	n := &node{kind: nodeRecord, name: name}
	p.named[name] = n
	fields, _ := t["fields"].([]any)
	seen := map[string]bool{}
	for _, f := range fields {
		f, ok := f.(map[string]any)
		field := nodeField{}
		if ok {
			field.name, ok = f["name"].(string)
		}
		if !ok || seen[field.name] {
			return nil, fmt.Errorf("the fields of %q do not have a name each", name)
		}
		seen[field.name] = true
		aliases, _ := f["aliases"].([]any)
		for _, a := range aliases {
			if s, ok := a.(string); ok {
				field.aliases = append(field.aliases, s)
			}
		}
		var err error
		if field.node, err = p.node(f["type"], depth+1); err != nil {
			return nil, fmt.Errorf("field %s: %w", field.name, err)
		}
		n.fields = append(n.fields, field)
	}
	return n, nil
}

// nodeOf is the node of a shape; made closes cycles.
func nodeOf(s *shape, made map[*shape]*node) *node {
	if n := made[s]; n != nil {
		return n
	}
	n := &node{shape: s, length: anyLength}
	made[s] = n
	switch s.form {
	case formBool:
		n.kind = nodeBoolean
	case formInt, formUint:
		n.kind = nodeNames[integerOf(s.typ)]
		n.setGo(goOf(s))
	case formUint64:
		n.kind, n.name, n.size = nodeFixed, "weir.uint64", 8
	case formFloat:
		n.kind = map[uintptr]nodeKind{4: nodeFloat, 8: nodeDouble}[s.typ.Size()]
	case formString:
		n.kind = nodeString
	case formTime:
		n.kind, n.logical = nodeLong, "timestamp-nanos"
	case formBytes:
		n.kind = nodeBytes
	case formOpaque:
		n.kind = nodeBytes
		n.setGo(goOf(s))
	case formFixed:
		n.kind, n.size = nodeFixed, s.length
	case formSlice:
		n.kind, n.elem = nodeArray, nodeOf(s.elem, made)
	case formArray:
		n.kind, n.length, n.elem = nodeArray, s.length, nodeOf(s.elem, made)
	case formPointer:
		n.kind, n.elem = nodeUnion, nodeOf(s.elem, made)
	case formMap:
		n.kind = nodeArray
		n.elem = &node{kind: nodeRecord, name: "entry", length: anyLength, fields: []nodeField{{name: entryKey, node: nodeOf(s.key, made)}, {name: entryValue, node: nodeOf(s.elem, made)}}}
	case formRecord:
		n.kind, n.name = nodeRecord, fullName(s.typ)
		for _, f := range s.fields {
			field := nodeField{name: identifier(f.name), node: nodeOf(f.shape, made), offset: f.offset}
			if f.was != "" {
				field.aliases = []string{identifier(f.was)}
			}
			n.fields = append(n.fields, field)
		}
	}
	return n
}
