package codec

import (
	"fmt"
	"reflect"
	"strings"
	"unsafe"
)

// A Reader decodes values of T that were written with the schema of another T: of an older version of the program. It may be
// used from any number of goroutines at once.
type Reader[T any] struct{ codec Codec[T] }

// Decode is as Codec.Decode, for the bytes of the other schema.
func (r *Reader[T]) Decode(src []byte, v *T) (rest []byte, err error) { return r.codec.Decode(src, v) }

// Change is one difference between what is stored and what is declared.
type Change struct {
	Path string // the field, as in RefusedError
	What string // as "added", "widened from int to long"
}

func (c Change) String() string {
	if c.Path == "" {
		return c.What
	}
	return c.Path + " " + c.What
}

// ResolveError says why values that were written with one schema cannot become values of another.
type ResolveError struct {
	Path             string
	Stored, Declared string // the types there
	Reason           string
	Instead          string // what to do about it
}

func (e *ResolveError) Error() string {
	where := ""
	if e.Path != "" {
		where = "field " + e.Path + ": "
	}
	return fmt.Sprintf("%sstored as %s, declared as %s: %s; %s", where, e.Stored, e.Declared, e.Reason, e.Instead)
}

// From is a reader of what was written with the given schema, and what is different about it; without changes the bytes are
// the same. The error is a *ResolveError where the rules below refuse, else that the text is no schema.
//
// The rules are Avro's for the resolution of schemas, as far as they lose nothing: fields are found by name, else by the name
// that the tag weir:"was=Name" says; one that is new is zero, one that is gone is passed over; the order is free; int becomes
// long or double, float becomes double, string and bytes become each other, a value becomes a pointer to one. Names of
// types are not compared. A map's keys must keep their canonical bytes. The length of an array and, where both schemas say them, the
// size of an integer and the methods of an opaque type must suit too (see attribute.go).
func (c *Codec[T]) From(writer string) (*Reader[T], []Change, error) {
	if writer == c.schema {
		return &Reader[T]{*c}, nil, nil
	}
	w, err := parse(writer)
	if err != nil {
		return nil, nil, err
	}
	s, err := shapeOf(reflect.TypeFor[T]())
	if err != nil {
		return nil, nil, err
	}
	r := &resolver{made: map[resolved]*program{}}
	p, err := r.program(w, nodeOf(s, map[*shape]*node{}), "")
	if err != nil {
		return nil, nil, err
	}
	if len(r.changes) == 0 {
		return &Reader[T]{*c}, nil, nil
	}
	reader := &Reader[T]{*c}
	reader.codec.program = p
	return reader, r.changes, nil
}

// Compare is From for schemas alone.
func Compare(writer, reader string) ([]Change, error) {
	if writer == reader {
		return nil, nil
	}
	return compare(writer, reader, false)
}

// CompareKeys is Compare for keys: their canonical bytes, and with them their hashes, must stay.
func CompareKeys(writer, reader string) ([]Change, error) {
	if writer == reader {
		return nil, nil
	}
	return compare(writer, reader, true)
}

func compare(writer, reader string, keys bool) ([]Change, error) {
	w, err := parse(writer)
	if err != nil {
		return nil, err
	}
	d, err := parse(reader)
	if err != nil {
		return nil, err
	}
	r := &resolver{made: map[resolved]*program{}}
	if keys {
		if err := sameKey(w, d, ""); err != nil {
			return nil, err
		}
	}
	_, err = r.program(w, d, "")
	return r.changes, err
}

// resolved is a pair of types that stand for each other: written, and read.
type resolved struct{ w, r *node }

// resolver makes programs that decode the written type into the read one. Where the read one has no shape they are empty.
type resolver struct {
	made    map[resolved]*program
	changes []Change
}

func (r *resolver) changed(path, format string, args ...any) {
	r.changes = append(r.changes, Change{Path: path, What: fmt.Sprintf(format, args...)})
}

func (r *resolver) program(w, d *node, path string) (*program, error) {
	if p := r.made[resolved{w, d}]; p != nil {
		return p, nil
	}
	p := &program{}
	r.made[resolved{w, d}] = p
	return p, r.add(p, w, d, 0, path)
}

// add adds to p what reads a w into the d that lies offset bytes from the start of p's value.
func (r *resolver) add(p *program, w, d *node, offset uintptr, path string) error {
	if d.kind == nodeUnion && w.kind != nodeUnion {
		r.changed(path, "made optional")
		return r.addParts(p, opPresent, w, d.elem, d, offset, path)
	}
	if err := r.suitNarrow(w, d, path); err != nil {
		return err
	}
	if w.kind == d.kind {
		return r.addSame(p, w, d, offset, path)
	}
	switch {
	case w.kind == nodeInt && d.kind == nodeLong:
		if d.narrow == "" || w.narrow != "" { // else suitNarrow has said what became of it
			r.changed(path, "widened from %v to %v", w, d)
		}
		r.addScalar(p, d, offset, path)
	case w.kind == nodeInt && d.kind == nodeDouble:
		r.changed(path, "widened from %v to double", w)
		r.addOp(p, op{code: opIntDouble, offset: offset}, path)
	case w.kind == nodeFloat && d.kind == nodeDouble:
		r.changed(path, "widened from float to double")
		r.addOp(p, op{code: opFloatDouble, offset: offset}, path)
	case w.isText() && d.isText():
		r.addScalar(p, d, offset, path)
	default:
		return mismatch(w, d, path)
	}
	return nil
}

// mismatch is the refusal of two types that do not stand for each other.
func mismatch(w, d *node, path string) error {
	e := &ResolveError{Path: path, Stored: w.String(), Declared: d.String(), Reason: "the one cannot become the other",
		Instead: "declare it as before, or give the new one another name and fill it from the old"}
	switch {
	case (w.kind == nodeLong || w.kind == nodeDouble) && (d.kind == nodeInt || d.kind == nodeLong || d.kind == nodeFloat || d.kind == nodeDouble),
		w.kind == nodeInt && (d.kind == nodeFloat || d.narrow != ""):
		e.Reason = "values would be cut"
	case w.kind == nodeUnion:
		e.Reason = "there may be none"
	}
	return e
}

func (r *resolver) addOp(p *program, o op, path string) {
	p.ops = append(p.ops, o)
	p.paths = append(p.paths, path)
}

// addScalar reads what has no parts as d is written.
func (r *resolver) addScalar(p *program, d *node, offset uintptr, path string) {
	if d.shape == nil {
		return
	}
	o := op{code: codeOf(d.shape), offset: offset}
	switch d.shape.form {
	case formFixed:
		o.more = &operand{length: d.shape.length}
	case formOpaque:
		o.more = &operand{pairType: d.shape.typ, pair: d.shape.pair}
		p.opaque = true
	}
	r.addOp(p, o, path)
}

// addSame is add for two types of one kind.
func (r *resolver) addSame(p *program, w, d *node, offset uintptr, path string) error {
	switch w.kind {
	case nodeRecord:
		return r.addRecord(p, w, d, offset, path)
	case nodeUnion:
		return r.addParts(p, opPointer, w.elem, d.elem, d, offset, path)
	case nodeArray:
		return r.addArray(p, w, d, offset, path)
	case nodeFixed:
		if w.size != d.size || (w.name == "weir.uint64") != (d.name == "weir.uint64") {
			return mismatch(w, d, path)
		}
	}
	if w.logical != d.logical {
		r.changed(path, "changed from %v to %v", w, d)
	}
	r.addScalar(p, d, offset, path)
	return nil
}

// addParts adds an operation on a pointer or a list of d, whose elements are written as w and read as elem.
func (r *resolver) addParts(p *program, code opcode, w, elem, d *node, offset uintptr, path string) error {
	inner := path
	if code == opSlice || code == opArray {
		inner = joinPath(path, "[]")
	}
	if code == opSlice && w.least() == 0 && elem.kind == nodeRecord && len(elem.fields) > 0 {
		return mismatch(w, elem, inner) // a few bytes could ask for any number of elements
	}
	q, err := r.program(w, elem, inner)
	if err != nil || d.shape == nil {
		return err
	}
	o := op{code: code, offset: offset, more: &operand{elements: elementsOf(d.shape), program: q, length: d.shape.length, least: w.least()}}
	p.opaque = p.opaque || code == opArray && q.opaque
	r.addOp(p, o, path)
	return nil
}

func (r *resolver) addArray(p *program, w, d *node, offset uintptr, path string) error {
	if w.isMap() != d.isMap() {
		return mismatch(w, d, path)
	}
	if d.isMap() {
		return r.addMap(p, w, d, offset, path)
	}
	if err := r.suitLength(w, d, path); err != nil {
		return err
	}
	code := opSlice
	if d.shape != nil && d.shape.form == formArray {
		code = opArray
	}
	return r.addParts(p, code, w.elem, d.elem, d, offset, path)
}

func (r *resolver) addMap(p *program, w, d *node, offset uintptr, path string) error {
	wk, wv, dk, dv := w.elem.fields[0].node, w.elem.fields[1].node, d.elem.fields[0].node, d.elem.fields[1].node
	if err := sameKey(wk, dk, joinPath(path, "[key]")); err != nil {
		return err
	}
	key, err := r.program(wk, dk, joinPath(path, "[key]"))
	if err != nil {
		return err
	}
	value, err := r.program(wv, dv, joinPath(path, "[]"))
	if err != nil || d.shape == nil {
		return err
	}
	r.addOp(p, op{code: opMap, offset: offset, more: &operand{elements: elementsOf(d.shape), program: value, key: key,
		keyType: d.shape.key.typ, least: w.elem.least()}}, path)
	return nil
}

// addRecord reads a record: its fields in the order in which they were written.
func (r *resolver) addRecord(p *program, w, d *node, offset uintptr, path string) error {
	to, err := match(w, d, path)
	if err != nil {
		return err
	}
	last, moved := -1, false
	taken := make([]bool, len(d.fields))
	for i, f := range w.fields {
		if to[i] < 0 {
			r.changed(joinPath(path, f.name), "removed")
			r.addOp(p, op{code: opSkip, offset: offset, more: &operand{skipped: f.node}}, joinPath(path, f.name))
			continue
		}
		into := d.fields[to[i]]
		taken[to[i]] = true
		moved = moved || to[i] < last
		last = to[i]
		inner := joinPath(path, into.name)
		if into.name != f.name {
			r.changed(inner, "renamed from %s", f.name)
		}
		if err := r.add(p, f.node, into.node, offset+into.offset, inner); err != nil {
			return err
		}
	}
	for i, f := range d.fields {
		if !taken[i] {
			r.changed(joinPath(path, f.name), "added")
		}
	}
	if moved {
		r.changed(path, "has its fields in another order")
	}
	return nil
}

// match finds for each written field the one that it is read into; -1: none. Records that have nothing in common are refused:
// everything would be lost.
func match(w, d *node, path string) ([]int, error) {
	to := make([]int, len(w.fields))
	any := len(w.fields) == 0 || len(d.fields) == 0
	for i, f := range w.fields {
		to[i] = d.find(f.name)
		any = any || to[i] >= 0
	}
	for j, f := range d.fields { // by an older name, where nothing has the new one
		if i := w.findAlias(f, to, j); i >= 0 {
			to[i] = j
			any = true
		}
	}
	if !any {
		return nil, &ResolveError{Path: path, Stored: w.fieldNames(), Declared: d.fieldNames(), Reason: "they have no field in common, so everything would be lost",
			Instead: `say what a renamed field was called, by the tag weir:"was=Name"`}
	}
	return to, nil
}

func (n *node) find(name string) int {
	for i := range n.fields {
		if n.fields[i].name == name {
			return i
		}
	}
	return -1
}

// findAlias is the written field that f, the j-th of the read ones, was once called by; -1: none, or f has one of its own name.
func (n *node) findAlias(f nodeField, to []int, j int) int {
	for _, at := range to {
		if at == j {
			return -1
		}
	}
	for _, alias := range f.aliases {
		if i := n.find(alias); i >= 0 && to[i] < 0 {
			return i
		}
	}
	return -1
}

func (n *node) fieldNames() string {
	names := make([]string, len(n.fields))
	for i, f := range n.fields {
		names[i] = f.name
	}
	return n.String() + "{" + strings.Join(names, ", ") + "}"
}

// sameKey refuses what would change the canonical bytes of a key. Those of an integer do not depend on its size, nor those of a
// float; those of a record are its fields' in order.
func sameKey(w, d *node, path string) error {
	refused := &ResolveError{Path: path, Stored: w.String(), Declared: d.String(), Reason: "a key must keep its canonical bytes, by which it is found again",
		Instead: "keep the key's type, or start without the state"}
	integer := func(n *node) bool { return (n.kind == nodeInt || n.kind == nodeLong) && n.logical == "" }
	switch {
	case integer(w) && integer(d), w.kind == nodeFloat && d.kind == nodeDouble:
		return nil
	case w.kind != d.kind || w.kind == nodeBytes || w.kind == nodeUnion || w.logical != d.logical:
		return refused
	case w.kind == nodeFixed && (w.size != d.size || (w.name == "weir.uint64") != (d.name == "weir.uint64")):
		return refused
	case w.kind == nodeArray && w.length != d.length && w.length != anyLength && d.length != anyLength:
		return refused
	case w.kind == nodeArray:
		return sameKey(w.elem, d.elem, joinPath(path, "[]"))
	case w.kind != nodeRecord:
		return nil
	}
	refused.Stored, refused.Declared = w.fieldNames(), d.fieldNames()
	to, err := match(w, d, path)
	if err != nil || len(w.fields) != len(d.fields) {
		return refused
	}
	for i, f := range w.fields {
		if to[i] != i {
			return refused
		}
		if err := sameKey(f.node, d.fields[i].node, joinPath(path, d.fields[i].name)); err != nil {
			return err
		}
	}
	return nil
}

// decodeChanged is decode for the operations that only readers of other schemas have.
func (o *op) decodeChanged(src []byte, at int, to unsafe.Pointer, depth int) (int, error) {
	switch o.code {
	case opIntDouble:
		n, at, err := long(src, at)
		*(*float64)(to) = float64(n)
		return at, err
	case opFloatDouble:
		var f float32
		at, err := decodeScalar(opFloat32, src, at, unsafe.Pointer(&f))
		*(*float64)(to) = float64(f)
		return at, err
	case opSkip:
		return o.more.skipped.skip(src, at, depth)
	}
	if depth >= nestingMax {
		return at, errNesting
	}
	pointer := (*unsafe.Pointer)(to)
	*pointer = reflect.New(o.more.elem).UnsafePointer()
	return o.more.program.decode(src, at, *pointer, *pointer, depth+1)
}
