package codec

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"
)

// A cloner turns a copy made by assignment into one that shares nothing: it visits what an assignment shares, and nothing
// else. It is a program of its own, as most fields of most types have no part in it. A nil cloner has nothing to do.
type cloner struct{ ops []cloneOp }

type cloneOp struct {
	elements // of a slice, array or map (its values); what a pointer points to
	form     form
	offset   uintptr
	cloner   *cloner // of an element; nil: assignment does
	length   int     // of an array
	pair     pairKind
	typ      reflect.Type // of the field
}

// clonerOf makes the cloner of s.
func clonerOf(s *shape) *cloner {
	c := clonerCompiler{made: make(map[*shape]*cloner)}
	return c.cloner(s)
}

type clonerCompiler struct{ made map[*shape]*cloner }

func (c *clonerCompiler) cloner(s *shape) *cloner {
	if !s.shares() {
		return nil
	}
	if made := c.made[s]; made != nil {
		return made
	}
	made := &cloner{}
	c.made[s] = made
	c.add(made, s, 0)
	return made
}

// shares tells whether an assigned copy has changeable parts in common with its original. Behind a pointer, slice or map
// the question ends, so cycles do not matter.
func (s *shape) shares() bool {
	switch s.form {
	case formBytes, formSlice, formPointer, formMap:
		return true
	case formArray:
		return s.length > 0 && s.elem.shares()
	case formRecord:
		return slices.ContainsFunc(s.fields, func(f field) bool { return f.shape.shares() })
	case formOpaque:
		return hasPointers(s.typ)
	}
	return false
}

func (c *clonerCompiler) add(to *cloner, s *shape, offset uintptr) {
	switch {
	case !s.shares():
	case s.form == formRecord:
		for _, f := range s.fields {
			c.add(to, f.shape, offset+f.offset)
		}
	default:
		o := cloneOp{form: s.form, offset: offset, typ: s.typ, length: s.length, pair: s.pair}
		if s.elem != nil {
			o.elements, o.cloner = elementsOf(s), c.cloner(s.elem)
		}
		to.ops = append(to.ops, o)
	}
}

// own replaces all that the value at v shares by copies.
func (c *cloner) own(v unsafe.Pointer, depth int) {
	if depth > nestingMax {
		panic(fmt.Errorf("codec: cloning a value %w", errNesting))
	}
	for i := range c.ops {
		o := &c.ops[i]
		at := unsafe.Add(v, o.offset)
		switch o.form {
		case formBytes:
			b := (*[]byte)(at)
			*b = slices.Clone(*b)
		case formSlice:
			o.ownSlice((*sliceHeader)(at), depth)
		case formArray:
			o.ownElements(at, o.length, depth)
		case formPointer:
			o.ownPointer(at, depth)
		case formMap:
			o.ownMap(at, depth)
		case formOpaque:
			o.ownOpaque(at)
		}
	}
}

func (o *cloneOp) ownElements(elems unsafe.Pointer, count, depth int) {
	for i := range count {
		o.cloner.own(o.at(elems, i), depth+1)
	}
}

func (o *cloneOp) ownSlice(s *sliceHeader, depth int) {
	if s.data == nil { // nil stays nil
		return
	}
	made := o.make(s.length, s.length)
	o.copy(made, *s)
	*s = made
	if o.cloner != nil {
		o.ownElements(s.data, s.length, depth)
	}
}

func (o *cloneOp) ownPointer(at unsafe.Pointer, depth int) {
	pointer := reflect.NewAt(o.typ, at).Elem()
	if pointer.IsNil() {
		return
	}
	target := reflect.New(o.elem)
	target.Elem().Set(pointer.Elem())
	if o.cloner != nil {
		o.cloner.own(target.UnsafePointer(), depth+1)
	}
	*(*unsafe.Pointer)(at) = target.UnsafePointer()
}

// ownMap copies a map. Keys are canonical and share nothing.
func (o *cloneOp) ownMap(at unsafe.Pointer, depth int) {
	old := reflect.NewAt(o.typ, at).Elem()
	if old.IsNil() {
		return
	}
	made := reflect.MakeMapWithSize(o.typ, old.Len())
	key, value := reflect.New(o.typ.Key()), reflect.New(o.elem)
	for iter := old.MapRange(); iter.Next(); {
		key.Elem().SetIterKey(iter)
		value.Elem().SetIterValue(iter)
		if o.cloner != nil {
			o.cloner.own(value.UnsafePointer(), depth+1)
		}
		made.SetMapIndex(key.Elem(), value.Elem())
	}
	*(*unsafe.Pointer)(at) = made.UnsafePointer()
}

func (o *cloneOp) ownOpaque(at unsafe.Pointer) {
	old := reflect.NewAt(o.typ, at)
	data, err := o.pair.marshal(old)
	made := reflect.New(o.typ)
	if err == nil {
		err = o.pair.unmarshal(made, data)
	}
	if err != nil {
		panic(fmt.Errorf("codec: cloning a %v by its methods: %w", o.typ, err))
	}
	old.Elem().Set(made.Elem())
}
