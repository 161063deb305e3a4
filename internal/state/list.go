package state

import (
	"encoding/binary"
	"iter"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/snapshot"
)

// List is a state of a list of elements per key. An empty list is no state.
//
// It only grows at its end: Add writes behind the length that a snapshot knows of, in the same array. All that takes
// elements away makes a new array.
type List[V any] struct{ col *listColumn[V] }

// Bind declares the state in t.
func (l *List[V]) Bind(t Table, s Spec) error {
	c, err := codec.For[V]()
	if err != nil {
		return err
	}
	l.col = &listColumn[V]{codec: c, clones: !c.Flat() && !s.Immutable}
	return l.col.bindTo(t, s, l.col)
}

// Add appends to the list of the current key.
func (l *List[V]) Add(vs ...V) {
	if len(vs) > 0 {
		l.bound().add(vs)
	}
}

// All yields the elements as they are when the loop begins.
func (l *List[V]) All() iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range l.bound().all() {
			if !yield(v) {
				return
			}
		}
	}
}

// Len is the number of elements.
func (l *List[V]) Len() int { return len(l.bound().unexpired()) }

// Update replaces the list; the elements of vs are copied.
func (l *List[V]) Update(vs []V) {
	l.bound().clear()
	l.Add(vs...)
}

// Clear removes the list.
func (l *List[V]) Clear() { l.bound().clear() }

func (l *List[V]) bound() *listColumn[V] {
	if l.col == nil {
		panic(&UsageError{Problem: unbound})
	}
	return l.col
}

// listColumn is the column of a List.
type listColumn[V any] struct {
	declared
	codec   *codec.Codec[V]
	stored  reader[V]
	lists   array[[]V]
	stamps  array[[]int64] // one per element, where elements expire
	clones  bool
	noBytes bool // elements may be of no bytes in the file that is restored
}

func (c *listColumn[V]) schema() snapshot.StateSchema {
	return snapshot.StateSchema{Name: c.spec.Name, Kind: KindList, Value: c.codec.Schema()}
}

func (c *listColumn[V]) readAs(stored snapshot.StateSchema) error {
	err := c.stored.as(stored.Value, c.codec)
	c.noBytes = err == nil && c.stored.readsNothing()
	return err
}

func (c *listColumn[V]) layOut() ([]part, []bitsRequest) {
	parts := []part{&c.lists}
	if c.spec.TTL > 0 {
		parts = append(parts, &c.stamps)
	}
	return c.request(c.clones, parts...)
}

func (c *listColumn[V]) opened() {}

func (c *listColumn[V]) add(vs []V) {
	fresh := !c.present()
	p, i := c.hold()
	if fresh && c.clones {
		c.takeOwnership()
	}
	list := c.lists.at(p, i)
	*list = append(*list, vs...)
	if c.spec.TTL > 0 {
		now := c.now()
		stamps := c.stamps.at(p, i)
		for range vs {
			*stamps = append(*stamps, now)
		}
	}
}

// all is the list, to be shown to the user: cloned, if a snapshot may read what its elements point to.
func (c *listColumn[V]) all() []V {
	list := c.unexpired()
	if len(list) == 0 || !c.clones {
		return list
	}
	c.t.own()
	if !c.takeOwnership() {
		cloned := make([]V, len(list))
		for i, v := range list {
			cloned[i] = c.codec.Clone(v)
		}
		list = cloned
		*c.lists.at(c.t.cur.page, uint(c.t.cur.slot)) = list
	}
	return list
}

// unexpired is the list of the current key, after what has expired was taken out.
func (c *listColumn[V]) unexpired() []V {
	if !c.present() {
		return nil
	}
	cur := &c.t.cur
	i := uint(cur.slot) % slotsPerPage
	if c.spec.TTL > 0 {
		now := c.now()
		stamps := *c.stamps.at(cur.page, i)
		if n := c.countLiving(stamps, now); n == 0 {
			c.clear()
			return nil
		} else if n < len(stamps) {
			c.t.own()
			c.trim(cur.page, i, n, now)
		}
	}
	return *c.lists.at(cur.page, i)
}

func (c *listColumn[V]) countLiving(stamps []int64, now int64) (n int) {
	for _, s := range stamps {
		if !expired(s, c.spec.TTL, now) {
			n++
		}
	}
	return n
}

// trim makes a new list of the n elements that have not expired.
func (c *listColumn[V]) trim(p *page, i uint, n int, now int64) {
	list, stamps := *c.lists.at(p, i), *c.stamps.at(p, i)
	left, leftStamps := make([]V, 0, n), make([]int64, 0, n)
	for j, s := range stamps {
		if !expired(s, c.spec.TTL, now) {
			left, leftStamps = append(left, list[j]), append(leftStamps, s)
		}
	}
	*c.lists.at(p, i), *c.stamps.at(p, i) = left, leftStamps
}

func (c *listColumn[V]) living(p *page, mask bitmap, now int64) bitmap {
	mask &= *word(p, c.has)
	if c.spec.TTL == 0 {
		return mask
	}
	for m := mask; m != 0; m &= m - 1 {
		i := lowest(m)
		if c.countLiving(*c.stamps.at(p, i), now) == 0 {
			mask &^= 1 << i
		}
	}
	return mask
}

func (c *listColumn[V]) encode(dst []byte, p *page, mask bitmap, now int64) (_ []byte, err error) {
	for m := mask; m != 0; m &= m - 1 {
		i := lowest(m)
		list := *c.lists.at(p, i)
		if c.spec.TTL > 0 {
			dst, err = c.encodeStamped(dst, list, *c.stamps.at(p, i), now)
		} else {
			dst, err = c.encodeList(dst, list)
		}
		if err != nil {
			return nil, c.fail(err)
		}
	}
	return dst, nil
}

func (c *listColumn[V]) encodeList(dst []byte, list []V) (_ []byte, err error) {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for j := range list {
		if dst, err = c.codec.Append(dst, &list[j]); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

func (c *listColumn[V]) encodeStamped(dst []byte, list []V, stamps []int64, now int64) (_ []byte, err error) {
	dst = binary.AppendUvarint(dst, uint64(c.countLiving(stamps, now)))
	for j := range list {
		if expired(stamps[j], c.spec.TTL, now) {
			continue
		}
		if dst, err = c.codec.Append(appendStamp(dst, stamps[j]), &list[j]); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

func (c *listColumn[V]) decode(src []byte, p *page, slots []uint8, from encoding) (_ []byte, gone bitmap, err error) {
	for _, i := range slots {
		list, stamps := c.lists.at(p, uint(i)), (*[]int64)(nil)
		if c.spec.TTL > 0 {
			stamps = c.stamps.at(p, uint(i))
		}
		if src, err = c.decodeList(src, list, stamps, from); err != nil {
			return nil, 0, c.fail(err)
		}
		if len(*list) == 0 {
			gone |= 1 << i
		}
	}
	return src, gone, nil
}

// decodeList reads one list, and the stamps of its elements if stamps is not nil.
func (c *listColumn[V]) decodeList(src []byte, list *[]V, stamps *[]int64, from encoding) (_ []byte, err error) {
	n, src, err := readCount(src, c.noBytes && !from.stamped)
	if err != nil {
		return nil, err
	}
	*list = make([]V, 0, min(n, len(src)))
	for range n {
		stamp := from.now
		if from.stamped {
			if stamp, src, err = readStamp(src); err != nil {
				return nil, err
			}
		}
		var v V
		if src, err = c.stored.Decode(src, &v); err != nil {
			return nil, err
		}
		if from.stamped && from.leftOut(stamp) {
			continue
		}
		*list = append(*list, v)
		if stamps != nil {
			*stamps = append(*stamps, stamp)
		}
	}
	return src, nil
}

func (c *listColumn[V]) appendRows(w *rowWriter, p *page, i uint, now int64) (err error) {
	list, n := *c.lists.at(p, i), int64(0)
	for j := range list {
		var stamp int64
		if c.spec.TTL > 0 {
			if stamp = (*c.stamps.at(p, i))[j]; expired(stamp, c.spec.TTL, now) {
				continue
			}
		}
		row := binary.AppendVarint(w.begin(), n)
		if row, err = c.codec.Append(row, &list[j]); err != nil {
			return err
		}
		if c.spec.TTL > 0 {
			row = appendExpiry(row, stamp, c.spec.TTL)
		}
		if err := w.end(row); err != nil {
			return err
		}
		n++
	}
	return nil
}

// readRow reads an element with its number.
func (c *listColumn[V]) readRow(src []byte, form rowForm) (n int64, v V, stamp int64, rest []byte, err error) {
	if n, src, err = readLong(src); err != nil {
		return 0, v, 0, nil, err
	}
	if src, err = c.stored.Decode(src, &v); err != nil {
		return 0, v, 0, nil, err
	}
	stamp, rest, err = form.stamp(src)
	return n, v, stamp, rest, err
}

func (c *listColumn[V]) decodeRow(src []byte, p *page, i uint, form rowForm) ([]byte, error) {
	n, v, stamp, rest, err := c.readRow(src, form)
	if err != nil {
		return nil, err
	}
	list := c.lists.at(p, i)
	if n != int64(len(*list)) {
		return nil, corrupt("the element numbered %d of a list comes behind %d others", n, len(*list))
	}
	*list = append(*list, v)
	if c.spec.TTL > 0 {
		stamps := c.stamps.at(p, i)
		*stamps = append(*stamps, stamp)
	}
	return rest, nil
}

func (c *listColumn[V]) skipRow(src []byte, form rowForm) ([]byte, error) {
	_, _, _, rest, err := c.readRow(src, form)
	return rest, err
}
