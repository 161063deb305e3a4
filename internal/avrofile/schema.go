package avrofile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Column is a field of the rows.
type Column struct {
	Name string
	Type string // its Avro schema, complete in itself
}

// RowName is the name of the record that a row is.
const RowName = "weir.row"

// Schema is the Avro schema of rows with these columns.
//
// Within a schema each name is defined once, and referred to by name wherever its type stands again: so where two columns have
// the same type, the second refers to the first. Where two columns have different types of one name, as types declared in
// functions can have, those of the second get a number. Types are the same when their definitions are, with the names of the
// types in it, and those types are the same.
func Schema(columns []Column) (string, error) {
	m := merger{defined: map[string]string{RowName: ""}}
	m.text.WriteString(`{"type":"record","name":` + strconv.Quote(RowName) + `,"fields":[`)
	for i, c := range columns {
		var t any
		if err := json.Unmarshal([]byte(c.Type), &t); err != nil {
			return "", fmt.Errorf("avrofile: the schema of column %s is no JSON: %w", c.Name, err)
		}
		if i > 0 {
			m.text.WriteByte(',')
		}
		m.text.WriteString(`{"name":` + strconv.Quote(c.Name) + `,"type":`)
		m.add(t)
		m.text.WriteByte('}')
	}
	m.text.WriteString(`]}`)
	return m.text.String(), nil
}

// merger writes the schemas of several columns into one.
type merger struct {
	text    strings.Builder
	defined map[string]string // the definitions so far, by name, with names in place of the types inside
}

// add writes the type of one more column.
func (m *merger) add(t any) {
	own := definitions{}
	own.collect(t)
	names := m.rename(own)
	w := printer{names: names, define: func(name string) bool { _, ok := m.defined[name]; return !ok }}
	w.write(t)
	m.text.WriteString(w.text.String())
	for name, d := range own {
		as := cmp.Or(names[name], name)
		m.defined[as] = d.print(as, names)
	}
}

// rename finds new names for those types of a column that have the name of another.
func (m *merger) rename(own definitions) map[string]string {
	others := map[string]bool{}
	for name, d := range own {
		before, ok := m.defined[name]
		others[name] = ok && before != d.print(name, nil)
	}
	for again := true; again; { // a type is another also when one that it refers to is
		again = false
		for name, d := range own {
			if _, ok := m.defined[name]; ok && !others[name] && d.refersToAny(others) {
				others[name], again = true, true
			}
		}
	}
	names := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		if others[name] {
			names[name] = m.free(name, own, names)
		}
	}
	return names
}

// free is a name with the least number that makes it one of its own.
func (m *merger) free(name string, own definitions, given map[string]string) string {
	for n := 2; ; n++ {
		as := name + "__" + strconv.Itoa(n)
		_, taken := m.defined[as]
		if _, is := own[as]; !taken && !is && !slices.Contains(slices.Collect(maps.Values(given)), as) {
			return as
		}
	}
}

// definitions are the named types of a schema.
type definitions map[string]definition

// definition is a record or a fixed, as JSON.
type definition map[string]any

// collect adds the definitions in t.
func (ds definitions) collect(t any) {
	switch t := t.(type) {
	case []any: // a union
		for _, branch := range t {
			ds.collect(branch)
		}
	case map[string]any:
		if name, ok := t["name"].(string); ok {
			ds[name] = t
		}
		ds.collect(t["type"])
		ds.collect(t["items"])
		fields, _ := t["fields"].([]any)
		for _, f := range fields {
			if f, ok := f.(map[string]any); ok {
				ds.collect(f["type"])
			}
		}
	}
}

// print is the definition with names in place of the types inside.
func (d definition) print(name string, names map[string]string) string {
	w := printer{names: names, define: func(inner string) bool { return inner == name }}
	w.write(map[string]any(d))
	return w.text.String()
}

// refersToAny tells whether d has one of these types inside.
func (d definition) refersToAny(others map[string]bool) (refers bool) {
	first := true
	w := printer{define: func(string) bool { top := first; first = false; return top }}
	w.met = func(name string) { refers = refers || others[name] }
	w.write(map[string]any(d))
	return refers
}

// printer writes schemas as text, their attributes in one order.
type printer struct {
	text   strings.Builder
	names  map[string]string      // new names of types
	define func(name string) bool // whether the definition of this name is to be written; else its name is
	met    func(name string)      // hears of each name that is written in place of a type; nil: nobody does
}

func (w *printer) name(name string) string { return cmp.Or(w.names[name], name) }

func (w *printer) refer(name string) {
	if w.met != nil {
		w.met(name)
	}
	w.text.WriteString(strconv.Quote(w.name(name)))
}

func (w *printer) write(t any) {
	switch t := t.(type) {
	case string:
		w.refer(t)
	case []any:
		for i, branch := range t {
			w.text.WriteByte("[,"[min(i, 1)])
			w.write(branch)
		}
		w.text.WriteByte(']')
	case map[string]any:
		w.writeType(t)
	default:
		w.text.WriteString("null")
	}
}

func (w *printer) writeType(t map[string]any) {
	name, named := t["name"].(string)
	if named && !w.define(w.name(name)) {
		w.refer(name)
		return
	}
	w.text.WriteString(`{"type":`)
	w.write(t["type"])
	if named {
		w.text.WriteString(`,"name":` + strconv.Quote(w.name(name)))
	}
	for _, attribute := range []string{"logicalType", "go", "length", "size"} {
		if v, ok := t[attribute]; ok {
			b, _ := json.Marshal(v) // what came from JSON
			fmt.Fprintf(&w.text, `,%q:%s`, attribute, b)
		}
	}
	if items, ok := t["items"]; ok {
		w.text.WriteString(`,"items":`)
		w.write(items)
	}
	if fields, ok := t["fields"].([]any); ok {
		w.writeFields(fields)
	}
	w.text.WriteByte('}')
}

func (w *printer) writeFields(fields []any) {
	w.text.WriteString(`,"fields":[`)
	for i, f := range fields {
		f, _ := f.(map[string]any)
		if i > 0 {
			w.text.WriteByte(',')
		}
		fmt.Fprintf(&w.text, `{"name":%q,"type":`, f["name"])
		w.write(f["type"])
		if aliases, ok := f["aliases"]; ok {
			b, _ := json.Marshal(aliases)
			fmt.Fprintf(&w.text, `,"aliases":%s`, b)
		}
		w.text.WriteByte('}')
	}
	w.text.WriteByte(']')
}
