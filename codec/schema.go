package codec

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// schemaOf writes the Avro schema of s: no white space, attributes in one order, so that equal types give equal text.
//
// Avro's names come from Go's: the namespace is the package's path, the name the type's, with whatever Avro does not allow
// turned into an underscore; two types that fall together so are told apart by a number. What Avro needs a name for and Go
// has none (the entries of a map, a struct type written in place) is named after the field that holds it, so that its name
// does not depend on other fields.
func schemaOf(s *shape) string {
	w := &schemaWriter{defined: make(map[string]bool), names: make(map[reflect.Type]string), open: make(map[*shape]string)}
	w.write(s, "weir.top")
	return w.text.String()
}

type schemaWriter struct {
	text    strings.Builder
	defined map[string]bool         // the names of Avro defined so far
	names   map[reflect.Type]string // those of types that have a name in Go
	open    map[*shape]string       // those of the unnamed records and entries being written
}

// write writes the schema of s; place is the name for what has none of its own.
func (w *schemaWriter) write(s *shape, place string) {
	switch s.form {
	case formBool:
		w.quote("boolean")
	case formInt, formUint:
		w.writeNarrow(integerOf(s.typ), s)
	case formUint64:
		w.fixed("weir.uint64", 8)
	case formFloat:
		w.quote(map[uintptr]string{4: "float", 8: "double"}[s.typ.Size()])
	case formString:
		w.quote("string")
	case formTime:
		w.text.WriteString(`{"type":"long","logicalType":"timestamp-nanos"}`)
	case formBytes:
		w.quote("bytes")
	case formOpaque:
		w.writeNarrow("bytes", s)
	case formFixed:
		w.fixed(w.nameOf(s.typ, "weir.fixed"+strconv.Itoa(s.length)), s.length)
	case formSlice, formArray:
		w.writeArray(s)
		w.write(s.elem, place)
		w.text.WriteByte('}')
	case formPointer:
		w.text.WriteString(`["null",`)
		w.write(s.elem, place)
		w.text.WriteByte(']')
	case formMap:
		w.writeArray(s)
		w.record(s, place+"__entry", []field{{name: "key", shape: s.key}, {name: "value", shape: s.elem}})
		w.text.WriteByte('}')
	case formRecord:
		w.record(s, w.nameOf(s.typ, place), s.fields)
	}
}

func (w *schemaWriter) quote(s string) { w.text.WriteString(strconv.Quote(s)) }

// fixed writes the definition of a fixed, or its name where it is defined.
func (w *schemaWriter) fixed(name string, size int) {
	if w.defined[name] {
		w.quote(name)
		return
	}
	w.defined[name] = true
	fmt.Fprintf(&w.text, `{"type":"fixed","name":%q,"size":%d}`, name, size)
}

// record writes the definition of a record, or its name where it is defined. A record that has no name in Go is defined at
// every place it stands; its name is used only inside itself.
func (w *schemaWriter) record(s *shape, name string, fields []field) {
	named := s.form == formRecord && s.typ.Name() != ""
	if open, ok := w.open[s]; ok || named && w.defined[name] {
		w.quote(cmp.Or(open, name))
		return
	}
	if !named {
		name = w.unique(name)
	}
	w.defined[name] = true
	w.open[s] = name
	fmt.Fprintf(&w.text, `{"type":"record","name":%q,"fields":[`, name)
	for i, f := range fields {
		if i > 0 {
			w.text.WriteByte(',')
		}
		fieldName := identifier(f.name)
		fmt.Fprintf(&w.text, `{"name":%q,"type":`, fieldName)
		w.write(f.shape, name+"__"+fieldName)
		if f.was != "" {
			fmt.Fprintf(&w.text, `,"aliases":[%q]`, identifier(f.was))
		}
		w.text.WriteByte('}')
	}
	w.text.WriteString(`]}`)
	delete(w.open, s)
}

// nameOf is the name of a type that has one in Go, and otherwise the name given.
func (w *schemaWriter) nameOf(t reflect.Type, otherwise string) string {
	if t.Name() == "" {
		return otherwise
	}
	name, ok := w.names[t]
	if !ok {
		name = w.unique(qualified(t))
		w.names[t] = name
	}
	return name
}

// unique puts a number behind a name that is taken. Types declared in functions of one package can share theirs.
func (w *schemaWriter) unique(name string) string {
	free := name
	for n := 2; w.defined[free]; n++ {
		free = name + "__" + strconv.Itoa(n)
	}
	return free
}

// qualified is the name of a Go type for Avro: its package's path with a dot for each slash, a dot, its name.
func qualified(t reflect.Type) string {
	var parts []string
	for part := range strings.SplitSeq(t.PkgPath(), "/") {
		parts = append(parts, identifier(part))
	}
	return strings.Join(append(parts, identifier(t.Name())), ".")
}

// identifier makes a name of Avro, [A-Za-z_][A-Za-z0-9_]*, of any text. Letters beyond ASCII, which fields can have,
// become _u and their number, so that they still differ.
func identifier(s string) string {
	var id strings.Builder
	for _, r := range s {
		switch digit := r >= '0' && r <= '9'; {
		case digit && id.Len() == 0:
			id.WriteByte('_')
			fallthrough
		case digit, r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
			id.WriteRune(r)
		case r < 0x80:
			id.WriteByte('_')
		default:
			fmt.Fprintf(&id, "_u%04x", r)
		}
	}
	return cmp.Or(id.String(), "_")
}
