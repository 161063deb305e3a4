package state

import (
	"unsafe"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/snapshot"
)

// Value is a state of one value per key. The methods other than Bind work on the current key.
//
// Get and Set are the record path, and are small enough to be inlined: each is one call, of code that is not generic,
// which returns where the value lies (see access), and a load or a store.
type Value[V any] struct {
	at  access
	col *valueColumn[V]
}

// Bind declares the state in t.
func (v *Value[V]) Bind(t Table, s Spec) error { return v.bind(t, s, KindValue) }

func (v *Value[V]) bind(t Table, s Spec, kind string) error {
	c, err := codec.For[V]()
	if err != nil {
		return err
	}
	v.col = newValueColumn(c, s, kind)
	v.col.access = &v.at
	return v.col.bindTo(t, s, v.col)
}

// Get is the value of the current key; where it has none, the zero value.
func (v *Value[V]) Get() V { return *(*V)(v.at.read()) }

// Lookup is the value of the current key, and whether it has one.
func (v *Value[V]) Lookup() (V, bool) {
	p := v.at.read()
	return *(*V)(p), p != unsafe.Pointer(&v.col.zero)
}

// Set stores the value of the current key.
func (v *Value[V]) Set(x V) { *(*V)(v.at.write()) = x }

// Clear removes the value of the current key.
func (v *Value[V]) Clear() {
	if v.col == nil {
		panic(&UsageError{Problem: unbound})
	}
	v.col.clear()
}

// access finds the place of the current key's value in one column.
//
// A plain column, one of values that hold nothing a snapshot could read behind the page's back and that never expire,
// needs to look only at its presence word, which seen is the offset of. Every other column sets seen to page.never, which
// is always zero: so it is asked each time, and the plain ones pay nothing for it.
type access struct {
	cur    *cursor
	seen   uintptr
	off    uintptr // of the values
	stride uintptr
	slow   slowAccess
}

// slowAccess is how a column that is not plain, or finds its word empty, is asked.
type slowAccess interface {
	readSlow() unsafe.Pointer  // the value, or a zero value that is the column's own
	writeSlow() unsafe.Pointer // where to put the value
}

func (a *access) read() unsafe.Pointer {
	if c := a.cur; c != nil && *word(c.page, a.seen)&c.bit != 0 {
		return unsafe.Add(unsafe.Pointer(c.page), a.off+uintptr(c.slot)*a.stride)
	}
	return a.readSlow()
}

func (a *access) write() unsafe.Pointer {
	if c := a.cur; c != nil && *word(c.page, a.seen)&c.writable != 0 {
		return unsafe.Add(unsafe.Pointer(c.page), a.off+uintptr(c.slot)*a.stride)
	}
	return a.writeSlow()
}

func (a *access) readSlow() unsafe.Pointer {
	if a.slow == nil {
		panic(&UsageError{Problem: unbound})
	}
	return a.slow.readSlow()
}

func (a *access) writeSlow() unsafe.Pointer {
	if a.slow == nil {
		panic(&UsageError{Problem: unbound})
	}
	return a.slow.writeSlow()
}

// boxBytes is the size over which a value lies behind a pointer, in a box: a page is copied when one of its 32 values is
// written, and must not drag 32 large ones along.
const boxBytes = 128

// valueColumn is the column of a Value.
type valueColumn[V any] struct {
	declared
	access *access
	codec  *codec.Codec[V]
	stored reader[V]
	kind   string
	values array[V]  // or
	boxes  array[*V] // when V is large
	stamps array[int64]
	boxed  bool
	clones bool // values must be cloned before the user sees them in a new epoch
	zero   V
}

func newValueColumn[V any](c *codec.Codec[V], s Spec, kind string) *valueColumn[V] {
	return &valueColumn[V]{
		codec: c, kind: kind, boxed: unsafe.Sizeof(*new(V)) > boxBytes, clones: !c.Flat() && !s.Immutable,
	}
}

func (c *valueColumn[V]) schema() snapshot.StateSchema {
	return snapshot.StateSchema{Name: c.spec.Name, Kind: c.kind, Value: c.codec.Schema()}
}

func (c *valueColumn[V]) readAs(stored snapshot.StateSchema) error {
	return c.stored.as(stored.Value, c.codec)
}

func (c *valueColumn[V]) layOut() ([]part, []bitsRequest) {
	parts := []part{&c.values}
	if c.boxed {
		parts[0] = &c.boxes
	}
	if c.spec.TTL > 0 {
		parts = append(parts, &c.stamps)
	}
	return c.request(c.boxed || c.clones, parts...)
}

func (c *valueColumn[V]) opened() {
	*c.access = access{cur: &c.t.cur, seen: unsafe.Offsetof(page{}.never), slow: c}
	if !c.boxed && !c.clones && c.spec.TTL == 0 {
		c.access.seen, c.access.off, c.access.stride = c.has, c.values.off, c.values.stride
	}
}

// at is where the value of a slot lies.
func (c *valueColumn[V]) at(p *page, i uint) *V {
	if c.boxed {
		return *c.boxes.at(p, i)
	}
	return c.values.at(p, i)
}

func (c *valueColumn[V]) readSlow() unsafe.Pointer {
	if !c.present() {
		return unsafe.Pointer(&c.zero)
	}
	cur := &c.t.cur
	if c.spec.TTL > 0 && expired(*c.stamps.at(cur.page, uint(cur.slot)), c.spec.TTL, c.now()) {
		c.clear()
		return unsafe.Pointer(&c.zero)
	}
	if c.clones {
		c.ownValue()
	}
	return unsafe.Pointer(c.at(cur.page, uint(cur.slot)))
}

// ownValue clones the current key's value if a snapshot may read what it points to.
func (c *valueColumn[V]) ownValue() {
	c.t.own()
	if c.takeOwnership() {
		return
	}
	p, i := c.t.cur.page, uint(c.t.cur.slot)
	v := c.codec.Clone(*c.at(p, i))
	if c.boxed {
		*c.boxes.at(p, i) = new(V)
	}
	*c.at(p, i) = v
}

func (c *valueColumn[V]) writeSlow() unsafe.Pointer {
	p, i := c.hold()
	if c.spec.TTL > 0 {
		*c.stamps.at(p, i) = c.now()
	}
	if c.owned != 0 && !c.takeOwnership() && c.boxed {
		*c.boxes.at(p, i) = new(V)
	}
	return unsafe.Pointer(c.at(p, i))
}

func (c *valueColumn[V]) living(p *page, mask bitmap, now int64) bitmap {
	mask &= *word(p, c.has)
	if c.spec.TTL == 0 {
		return mask
	}
	for m := mask; m != 0; m &= m - 1 {
		if i := lowest(m); expired(*c.stamps.at(p, i), c.spec.TTL, now) {
			mask &^= 1 << i
		}
	}
	return mask
}

func (c *valueColumn[V]) encode(dst []byte, p *page, mask bitmap, _ int64) (_ []byte, err error) {
	if c.spec.TTL == 0 && !c.boxed {
		if dst, err = appendSlots(dst, c.codec, &c.values, p, mask); err != nil {
			return nil, c.fail(err)
		}
		return dst, nil
	}
	for m := mask; m != 0; m &= m - 1 {
		i := lowest(m)
		if c.spec.TTL > 0 {
			dst = appendStamp(dst, *c.stamps.at(p, i))
		}
		if dst, err = c.codec.Append(dst, c.at(p, i)); err != nil {
			return nil, c.fail(err)
		}
	}
	return dst, nil
}

func (c *valueColumn[V]) decode(src []byte, p *page, slots []uint8, from encoding) (_ []byte, gone bitmap, err error) {
	for _, s := range slots {
		i := uint(s) % slotsPerPage
		stamp := from.now
		if from.stamped {
			if stamp, src, err = readStamp(src); err != nil {
				return nil, 0, c.fail(err)
			}
			if from.leftOut(stamp) {
				gone |= 1 << i
			}
		}
		if c.spec.TTL > 0 {
			*c.stamps.at(p, i) = stamp
		}
		if c.boxed {
			*c.boxes.at(p, i) = new(V)
		}
		if src, err = c.stored.Decode(src, c.at(p, i)); err != nil {
			return nil, 0, c.fail(err)
		}
	}
	return src, gone, nil
}

func (c *valueColumn[V]) appendRows(w *rowWriter, p *page, i uint, _ int64) error {
	row, err := appendOne(w.begin(), c.codec, c.at(p, i))
	if err != nil {
		return err
	}
	if c.spec.TTL > 0 {
		row = appendExpiry(row, *c.stamps.at(p, i), c.spec.TTL)
	}
	return w.end(row)
}

func (c *valueColumn[V]) decodeRow(src []byte, p *page, i uint, form rowForm) (_ []byte, err error) {
	i %= slotsPerPage
	if *word(p, c.has)>>i&1 == 1 {
		return nil, corrupt("a key has two values")
	}
	if c.boxed {
		*c.boxes.at(p, i) = new(V)
	}
	if src, err = c.stored.Decode(src, c.at(p, i)); err != nil {
		return nil, err
	}
	stamp, src, err := form.stamp(src)
	if c.spec.TTL > 0 {
		*c.stamps.at(p, i) = stamp
	}
	return src, err
}

func (c *valueColumn[V]) skipRow(src []byte, form rowForm) (_ []byte, err error) {
	var v V
	if src, err = c.stored.Decode(src, &v); err != nil {
		return nil, err
	}
	_, src, err = form.stamp(src)
	return src, err
}
