package codec

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// Avro's types are wider than Go's: an int is anything from int8 to int32, an array has any length, bytes do not say who made
// them. What would get lost so is said in two attributes, which readers of other languages pass over: "go" of integers and of the
// bytes of opaque types, "length" of arrays. By them a change that the values cannot follow is seen before any value is.
//
// Schemas that older versions wrote have neither. Then what was written may be anything that its Avro type allows: it is taken as far as the
// values fit, which is seen when they are read, and the change says so.

// narrow are the integers that are narrower than their type of Avro: the least and the greatest value of each.
var narrow = map[string]struct {
	kind        nodeKind
	least, most int64
}{
	"int8":   {nodeInt, math.MinInt8, math.MaxInt8},
	"int16":  {nodeInt, math.MinInt16, math.MaxInt16},
	"uint8":  {nodeInt, 0, math.MaxUint8},
	"uint16": {nodeInt, 0, math.MaxUint16},
	"uint32": {nodeLong, 0, math.MaxUint32},
}

// goOf is the attribute "go" of a shape: the kind of a narrow integer, or the pair of methods and the name of an opaque type.
func goOf(s *shape) string {
	if s.form == formOpaque {
		return s.pair.String() + " " + qualified(s.typ)
	}
	if kind := s.typ.Kind().String(); narrow[kind].kind != 0 {
		return kind
	}
	return ""
}

// setGo takes over an attribute "go", where it is one that Weir writes for a node of the kind.
func (n *node) setGo(text string) {
	pair, name, _ := strings.Cut(text, " ")
	switch {
	case n.kind == nodeBytes && (pair == binaryPair.String() || pair == textPair.String()):
		n.narrow, n.name = pair, name
	case n.kind != 0 && narrow[text].kind == n.kind:
		n.narrow = text
	}
}

// anyLength is the length of a slice, and of an array in a schema that does not say it.
const anyLength = -1

// setLength takes over an attribute "length".
func (n *node) setLength(text any) error {
	n.length = anyLength
	if text == nil {
		return nil
	}
	length, ok := text.(float64)
	if !ok || length < 0 || length > math.MaxInt32 || length != math.Trunc(length) {
		return fmt.Errorf("an array has the length %v", text)
	}
	n.length = int(length)
	return nil
}

// suitNarrow refuses, or notes, what the types of Avro alone would allow: an integer whose values need not fit into the
// declared one, and bytes that other methods read than made them.
func (r *resolver) suitNarrow(w, d *node, path string) error {
	switch {
	case w.isText() && d.isText():
		return r.suitOpaque(w, d, path)
	case d.narrow == "" || w.kind != nodeInt && w.kind != nodeLong || d.kind < w.kind:
		return nil
	case w.logical != "":
		return mismatch(w, d, path)
	case w.narrow == "":
		r.changed(path, "narrowed from %v to %v, as far as the values fit", w, d)
		return nil
	}
	if from, to := narrow[w.narrow], narrow[d.narrow]; from.least < to.least || from.most > to.most {
		return mismatch(w, d, path)
	}
	return nil
}

// isText tells whether values of n are a length and bytes.
func (n *node) isText() bool { return n.kind == nodeString || n.kind == nodeBytes }

// suitOpaque is suitNarrow for strings, bytes and opaque types.
func (r *resolver) suitOpaque(w, d *node, path string) error {
	switch {
	case w.narrow != "" && d.narrow != "" && w.narrow != d.narrow, w.kind == nodeString && d.narrow == binaryPair.String():
		return mismatch(w, d, path)
	case w.kind != d.kind || w.narrow != d.narrow:
		r.changed(path, "changed from %v to %v", w, d)
	case w.name != d.name:
		r.changed(path, "made by the methods of %s, read by those of %s", w.name, d.name)
	}
	return nil
}

// suitLength is suitNarrow for lists.
func (r *resolver) suitLength(w, d *node, path string) error {
	switch {
	case w.length == d.length, d.length == anyLength:
		return nil
	case w.length == anyLength:
		r.changed(path, "became an %v, as far as there are %d", d, d.length)
		return nil
	}
	return &ResolveError{Path: path, Stored: w.String(), Declared: d.String(), Reason: "an array keeps its length",
		Instead: "declare a slice, which takes any number of elements, or give the new one another name and fill it from the old"}
}

// writeNarrow writes the schema of an integer or an opaque type.
func (w *schemaWriter) writeNarrow(avro string, s *shape) {
	if attribute := goOf(s); attribute != "" {
		fmt.Fprintf(&w.text, `{"type":%q,"go":%q}`, avro, attribute)
		return
	}
	w.quote(avro)
}

// writeArray writes how the schema of an array of s begins, up to its items.
func (w *schemaWriter) writeArray(s *shape) {
	w.text.WriteString(`{"type":"array",`)
	if s.form == formArray {
		w.text.WriteString(`"length":` + strconv.Itoa(s.length) + `,`)
	}
	w.text.WriteString(`"items":`)
}

// integerOf is "int" for what fits in 32 bits with a sign, "long" for the rest.
func integerOf(t reflect.Type) string {
	if t.Size() < 4 || t.Kind() == reflect.Int32 {
		return "int"
	}
	return "long"
}
