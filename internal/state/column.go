package state

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/snapshot"
)

// Table is the face of a *Keyed that state fields are bound to: it does not know the type of the keys.
type Table interface {
	bind(c column) error
	tableOf() *table
}

// column is one declared state: one or more parts of every page, and its bits. Only the owner's goroutine calls it, but
// for encode, which reads pages of a view.
type column interface {
	common() *declared
	schema() snapshot.StateSchema // without the key's
	layOut() ([]part, []bitsRequest)
	opened() // the layout is known
	// readAs says how the values were written that decode, decodeRow and skipRow will read; suits has allowed it.
	readAs(stored snapshot.StateSchema) error

	// encode appends the values at the slots in mask, in their order; all of them are there and one at least, and not
	// expired at now.
	encode(dst []byte, p *page, mask bitmap, now int64) ([]byte, error)
	// decode reads what encode wrote, to the given slots of a page that no snapshot reads. At those in gone all had expired.
	decode(src []byte, p *page, slots []uint8, from encoding) (rest []byte, gone bitmap, err error)
	// appendRows adds a row for each element at slot i, which is there, but for those that have expired at now.
	appendRows(w *rowWriter, p *page, i uint, now int64) error
	// decodeRow reads what appendRows wrote of one element behind the key, and puts it into slot i of a page that no snapshot
	// reads; skipRow passes over it.
	decodeRow(src []byte, p *page, i uint, form rowForm) (rest []byte, err error)
	skipRow(src []byte, form rowForm) (rest []byte, err error)
	// living is that part of mask whose state has something left that has not expired at now.
	living(p *page, mask bitmap, now int64) bitmap
}

// encoding says how the column's bytes in a file were written.
type encoding struct {
	stamped bool  // a time stamp stands with each value
	now     int64 // the stamp to give where there is none

	ttl    time.Duration // that the values had; 0: they did not expire
	moment int64         // of the snapshot
}

// leftOut reports that something written at stamp had expired at the moment of the snapshot, and is in the file only because its
// page was not written again since.
func (e *encoding) leftOut(stamp int64) bool { return e.ttl > 0 && expired(stamp, e.ttl, e.moment) }

// declared is what all columns have.
//
// # Ownership of what values point to
//
// To own a page is not to own the slices, maps and boxes its values point to: the copy of a page shares them with the
// snapshot. A column of such values has a second bitmap, owned: bits of the slots whose referents no snapshot can read.
// A copy of a page clears it; the first access to a slot clones its value and sets the bit. (Where the page is stamped
// in place no snapshot reads it, and the bits go on being true.)
type declared struct {
	t     *table
	spec  Spec
	parts []part
	has   uintptr // offset of the presence bits
	owned uintptr // offset of the ownership bits; 0: the column has none
}

func (d *declared) common() *declared { return d }

// bindTo declares a column in a table.
func (d *declared) bindTo(t Table, s Spec, c column) error {
	if t == nil {
		return fmt.Errorf("state %q: it belongs to no keyed operator", s.Name)
	}
	d.t, d.spec = t.tableOf(), s
	return t.bind(c)
}

// request is what a column of these parts asks of the layout.
func (d *declared) request(owned bool, parts ...part) ([]part, []bitsRequest) {
	d.parts = parts
	words := []bitsRequest{{off: &d.has}}
	if owned {
		words = append(words, bitsRequest{off: &d.owned, owned: true})
	}
	return parts, words
}

// mustBeKeyed panics where there is no current key.
func (d *declared) mustBeKeyed() {
	if d.t == nil {
		panic(&UsageError{Problem: unbound})
	}
	if d.t.cur.slot == noKey {
		panic(&UsageError{State: d.spec.Name, Problem: outsideCall})
	}
}

// present reports whether the current key has this state, expired or not.
func (d *declared) present() bool {
	d.mustBeKeyed()
	c := &d.t.cur
	return *word(c.page, d.has)&c.bit != 0
}

// hold gives the current key an entry that may be written and has this state.
func (d *declared) hold() (p *page, i uint) {
	d.mustBeKeyed()
	d.t.ensure()
	c := &d.t.cur
	*word(c.page, d.has) |= c.bit
	return c.page, uint(c.slot) % slotsPerPage
}

// takeOwnership says that what the current key's value points to is owned from now on, as its page is already; the caller
// clones it, if it was not.
func (d *declared) takeOwnership() (already bool) {
	c := &d.t.cur
	w := word(c.page, d.owned)
	already = *w&c.bit != 0
	*w |= c.bit
	return already
}

// clear drops this state of the current key; the entry goes in Settle, if it was its last.
func (d *declared) clear() {
	if !d.present() {
		return
	}
	d.t.own()
	d.drop(d.t.cur.page, d.t.cur.bit)
	d.t.cur.unsettled = true
}

// drop takes this state from slots of a page that is owned.
func (d *declared) drop(p *page, mask bitmap) {
	for _, a := range d.parts {
		a.clear(p, mask)
	}
	*word(p, d.has) &^= mask
	if d.owned != 0 {
		*word(p, d.owned) &^= mask
	}
}

// now is the processing time, for states that expire. They are tidied up behind calls that use them.
func (d *declared) now() int64 {
	d.t.cur.unsettled = true
	return d.t.clock()
}

// fail adds the state's name to an error of its codec.
func (d *declared) fail(err error) error { return fmt.Errorf("state %q: %w", d.spec.Name, err) }

// addColumn takes a column into the table. Two states of one name are refused: they would share what is stored.
func (t *table) addColumn(c column) error {
	d := c.common()
	if t.lay != nil {
		return fmt.Errorf("state %q: declared after the operator was opened", d.spec.Name)
	}
	if d.spec.Name == "" {
		return fmt.Errorf("a state of kind %s has no name; give it one in its tag", c.schema().Kind)
	}
	if d.spec.TTL < 0 {
		return fmt.Errorf("state %q: its time to live, %v, is negative", d.spec.Name, d.spec.TTL)
	}
	i := slices.IndexFunc(t.columns, func(o column) bool { return o.common().spec.Name == d.spec.Name })
	if i >= 0 {
		return fmt.Errorf("state %q is declared twice, as %s and as %s; give one of them another name", d.spec.Name,
			describe(t.columns[i].schema()), describe(c.schema()))
	}
	parts, words := c.layOut()
	t.parts = append(t.parts, parts...)
	t.words = append(t.words, words...)
	t.columns = append(t.columns, c)
	t.expires = t.expires || d.spec.TTL > 0
	return nil
}

// describe tells a schema to people.
func describe(s snapshot.StateSchema) string {
	switch {
	case s.MapKey != "":
		return fmt.Sprintf("%s of %s to %s", s.Kind, s.MapKey, s.Value)
	case s.Value != "":
		return fmt.Sprintf("%s of %s", s.Kind, s.Value)
	}
	return s.Kind
}
