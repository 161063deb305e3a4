package state

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// AllowDropped makes Restore pass over stored states that are not declared any more, instead of refusing them.
func (k *Keyed[K]) AllowDropped() { k.allowDropped = true }

// Dropped are the names of the states that Restore passed over.
func (k *Keyed[K]) Dropped() []string { return k.dropped }

// Restore merges what a state file, and those that it refers to, have within a range of key groups into the state, which is
// open and new but for other calls of Restore: after a rescaling there is a file from each old subtask that had a part of the
// range. Hashes outside the subtask's own range are passed over.
//
// Where a file is of just this range, and all comes back as it was, later checkpoints may be written upon the one restored.
func (k *Keyed[K]) Restore(from RestoreFile, within base.KeyGroupRange) error {
	f, err := from.open()
	if err != nil {
		return err
	}
	columns, err := k.match(f.keyedTrailer)
	if err != nil {
		return err
	}
	within, ok := within.Intersect(k.within)
	if !ok {
		return nil
	}
	d := restorer{stored: f, columns: columns, whole: true}
	d.least, d.most = within.Hashes()
	if k.expires {
		d.now = k.clock()
	}
	if from.ID != 0 && k.isEmpty() && f.version == version2 && f.within == k.within && within == k.within && k.writesLike(f.keyedTrailer) {
		d.manifest = f.manifest()
	}
	if err := d.restore(tableKeys, &k.table, k.decodeKey); err != nil {
		return err
	}
	d.columns = nil
	for i := range k.timers {
		timers := &k.timers[i]
		timers.stale = true
		if err := d.restore(tableProcessing+i, &timers.set.table, timers.decodeKey); err != nil {
			return err
		}
	}
	if d.manifest != nil && d.whole {
		k.buildUpon(from.ID, d.manifest)
	}
	return nil
}

// writesLike reports whether a file of version 2 was written with the schemas that are declared, and the same times to live: pages of
// the same bytes would be written now, and the same of what is in them would count as expired.
func (k *Keyed[K]) writesLike(f *keyedTrailer) bool {
	return f.key == k.codec.Codec().Schema() && slices.EqualFunc(f.columns, k.columns, func(f fileColumn, c column) bool {
		return f.schema == c.schema() && f.ttl == c.common().spec.TTL
	})
}

// isEmpty reports that nothing was restored or written yet.
func (k *Keyed[K]) isEmpty() bool {
	return k.table.entries+k.timers[0].set.entries+k.timers[1].set.entries == 0
}

// manifest is that of the file, whose sections are still to come.
func (f *storedKeyed) manifest() *manifest {
	m := &manifest{number: f.number, files: f.files.of}
	if f.files.of[len(f.others)].handle.File == "" {
		m.files = m.files[:len(f.others)]
	}
	for i, t := range f.tables {
		m.tables[i] = tableManifest{shift: t.shift, base: t.base}
	}
	return m
}

// buildUpon makes what was restored from a checkpoint one that later ones may be written upon: what is written from now on is
// written in newer epochs.
func (k *Keyed[K]) buildUpon(id base.CheckpointID, m *manifest) {
	var epochs [tables]epoch
	for i, t := range []*table{&k.table, &k.timers[0].set.table, &k.timers[1].set.table} {
		epochs[i] = t.cur.epoch
		t.cur.epoch++
		t.cur.leave(t.void, noKey)
	}
	k.baselines.add(id, 0, epochs).manifest.Store(m)
}

// match finds the declared column of each stored one; nil for one to pass over.
func (k *Keyed[K]) match(f *keyedTrailer) ([]column, error) {
	if err := k.readKeysAs(f.key); err != nil {
		return nil, err
	}
	columns := make([]column, len(f.columns))
	for i, stored := range f.columns {
		c, err := k.matchOne(stored.schema, func(name string) bool {
			return slices.ContainsFunc(f.columns, func(o fileColumn) bool { return o.schema.Name == name })
		})
		if err != nil {
			return nil, err
		}
		if c != nil && slices.Contains(columns[:i], c) {
			return nil, corrupt("state %q is in it twice", stored.schema.Name)
		}
		columns[i] = c
	}
	return columns, nil
}

// matchOne finds the declared column of a stored state; nil: it is to be passed over. isStored tells what other names are stored.
func (k *Keyed[K]) matchOne(stored snapshot.StateSchema, isStored func(name string) bool) (column, error) {
	c := k.columnFor(stored.Name, isStored)
	if c == nil {
		if !k.allowDropped {
			return nil, &SchemaError{State: stored.Name, Stored: stored.Kind}
		}
		if !slices.Contains(k.dropped, stored.Name) {
			k.dropped = append(k.dropped, stored.Name)
		}
		return nil, nil
	}
	return c, migrate(stored, c)
}

// columnFor is the declared column that a stored name belongs to: the one of that name, else one that was called so and
// is not stored under its new name.
func (k *Keyed[K]) columnFor(name string, isStored func(name string) bool) column {
	for _, c := range k.columns {
		if c.common().spec.Name == name {
			return c
		}
	}
	for _, c := range k.columns {
		if s := c.common().spec; s.Was == name && name != "" && !isStored(s.Name) {
			return c
		}
	}
	return nil
}

// restorer reads those pages of a checkpoint that have a part of [least, most] into tables.
type restorer struct {
	stored      *storedKeyed
	least, most uint64
	now         int64
	columns     []column  // of the table being restored, in the file's order; nil: pass over
	manifest    *manifest // of what is restored; nil: not wanted
	whole       bool      // every page came back as it was

	table *table
	key   keyDecoder
	slots [slotsPerPage]uint8 // of the page being restored: where its entries were put, in the file's order
}

// keyDecoder reads a key, takes a slot of p for it, and puts it there.
type keyDecoder func(src []byte, p *page) (slot uint8, h uint64, rest []byte, err error)

// restore reads the pages of a table.
func (d *restorer) restore(number int, t *table, key keyDecoder) error {
	d.table, d.key = t, key
	section := sectionBuilder{}
	err := d.stored.pages(number, d.least, d.most, func(from storedPages) error {
		src := from.bytes
		for len(src) > 0 {
			hash, p, rest, err := d.restorePage(src)
			switch {
			case err != nil:
				return err
			case hash < from.least || hash > from.most:
				return corrupt("a page lies among those of another range")
			case from.section != nil && len(rest) > 0:
				return corrupt("a page has %d bytes too many", len(rest))
			}
			if d.manifest != nil {
				section.add(&d.manifest.tables[number], from, placeOf(firstOf(p, hash), p.depth))
			}
			src = rest
		}
		return nil
	})
	if d.manifest != nil {
		section.end(&d.manifest.tables[number])
	}
	return err
}

// sectionBuilder makes the sections of a manifest anew, while their pages are restored.
type sectionBuilder struct {
	from  *storedSection
	pages []filePage
}

func (b *sectionBuilder) add(t *tableManifest, from storedPages, place uint64) {
	if b.from != from.section {
		b.end(t)
		b.from = from.section
	}
	b.pages = append(b.pages, filePage{place, from.at})
}

func (b *sectionBuilder) end(t *tableManifest) {
	if s := newSection(b.pages); s != nil {
		s.at = b.from.at
		t.put(b.from.segment, s)
	}
	b.pages = b.pages[:0]
}

// restorePage reads a page as an object of its own, and puts it into the table: whole, where it fits in the place of an
// empty page, as nearly all do; else entry by entry. It returns the hash of one of its entries.
func (d *restorer) restorePage(src []byte) (hash uint64, p *page, rest []byte, err error) {
	if len(src) < 2 || src[0] > 64 || src[1] == 0 || src[1] > slotsPerPage {
		return 0, nil, nil, corrupt("a page's head makes no sense")
	}
	t := d.table
	p = t.lay.newPage(t.cur.epoch, src[0])
	slots := d.slots[:src[1]]
	src = src[2:]
	whole := true
	for n := range slots {
		var h uint64
		if slots[n], h, src, err = d.key(src, p); err != nil {
			return 0, nil, nil, err
		}
		if n == 0 {
			hash = h
		} else if (h^hash)&^lowBits(p.depth) != 0 {
			return 0, nil, nil, corrupt("a page has keys of another")
		}
		whole = whole && d.least <= h && h <= d.most
	}
	for i, c := range d.columns {
		if src, err = d.restoreColumn(src, p, slots, c, &d.stored.columns[i]); err != nil {
			return 0, nil, nil, err
		}
	}
	t.dropBare(p)
	if p.live == 0 || whole && t.adopt(hash, p) {
		return hash, p, src, nil
	}
	d.whole = false
	return hash, p, src, d.insertEach(p)
}

// restoreColumn reads the values of one column to their slots in p.
func (d *restorer) restoreColumn(src []byte, p *page, slots []uint8, c column, stored *fileColumn) (rest []byte, err error) {
	if len(src) < 4 {
		return nil, errShort
	}
	n := uint64(binary.LittleEndian.Uint32(src))
	if n > uint64(len(src)-4) {
		return nil, errShort
	}
	rest, src = src[4+n:], src[4:4+n]
	if len(src) == 0 || c == nil {
		return rest, nil
	}
	if len(src) < 4 {
		return nil, errShort
	}
	dense := binary.LittleEndian.Uint32(src)
	if dense&^lowestBits(len(slots)) != 0 {
		return nil, corrupt("a column has values of no key")
	}
	var have bitmap
	var to [slotsPerPage]uint8
	filled := 0
	for n, slot := range slots {
		if dense>>n&1 == 1 {
			have |= 1 << slot
			to[filled] = slot
			filled++
		}
	}
	from := encoding{stamped: stored.stamped, now: d.now, ttl: stored.ttl, moment: d.stored.moment}
	src, gone, err := c.decode(src[4:], p, to[:filled], from)
	if err != nil {
		return nil, err
	}
	if len(src) > 0 {
		return nil, corrupt("state %q has %d bytes too many", c.common().spec.Name, len(src))
	}
	*word(p, c.common().has) |= have
	if owned := c.common().owned; owned != 0 {
		*word(p, owned) |= have
	}
	if gone != 0 {
		c.common().drop(p, gone)
	}
	return rest, nil
}

// insertEach inserts the entries of p that are in the range, one by one.
func (d *restorer) insertEach(p *page) error {
	t := d.table
	for m := p.live; m != 0; m &= m - 1 {
		i := lowest(m)
		h := t.keys.hashAt(p, i)
		if h < d.least || h > d.most {
			continue
		}
		if t.keys.has(h, p, i) {
			return corrupt("a key was restored already")
		}
		q, j := t.insert(h)
		q.drop(1 << j) // move takes it again
		t.lay.move(q, j, p, i)
	}
	return nil
}

// dropBare drops the entries of p, which is in no table yet, that have no state: it was passed over, or had expired.
func (t *table) dropBare(p *page) {
	var have bitmap
	for _, c := range t.columns {
		have |= *word(p, c.common().has)
	}
	if len(t.columns) > 0 && have != p.live {
		t.lay.clear(p, p.live&^have)
	}
}

// adopt puts p in the place of an empty page, at the hash of one of its entries: pages come back as they were written.
func (t *table) adopt(h uint64, p *page) bool {
	for {
		s, q := t.leaf(h)
		switch {
		case s.list || q.live != 0 || q.depth > p.depth:
			return false
		case q.depth < p.depth:
			t.split(h)
		default:
			t.ownLeaf(h).put(s.at(h), p)
			t.entries += p.count()
			return true
		}
	}
}

// readKeysAs refuses keys of a schema that cannot become the declared ones, and makes those of all others readable.
func (k *Keyed[K]) readKeysAs(schema string) error {
	if err := suitKeys(schema, k.codec.Codec().Schema()); err != nil {
		return err
	}
	return k.stored.as(schema, k.codec.Codec())
}

func (k *Keyed[K]) decodeKey(src []byte, p *page) (slot uint8, h uint64, rest []byte, err error) {
	var key K
	if rest, err = k.stored.Decode(src, &key); err != nil {
		return 0, 0, nil, fmt.Errorf("a stored key: %w", err)
	}
	if err = k.codec.Valid(key); err != nil {
		return 0, 0, nil, fmt.Errorf("a stored key: %w", err)
	}
	slot, h, err = k.index.put(p, key)
	return slot, h, rest, err
}

func (t *Timers[K]) decodeKey(src []byte, p *page) (slot uint8, h uint64, rest []byte, err error) {
	var x timer[K]
	if rest, err = t.decodeTimer(src, &x); err != nil {
		return 0, 0, nil, fmt.Errorf("a stored timer: %w", err)
	}
	if err = t.owner.codec.Valid(x.key); err != nil {
		return 0, 0, nil, fmt.Errorf("a stored timer: %w", err)
	}
	slot, h, err = t.set.put(p, x)
	return slot, h, rest, err
}

// put puts k into a free slot of p, a page that is in no table yet.
func (x *index[K]) put(p *page, k K) (slot uint8, h uint64, err error) {
	h = x.slots.hash(k)
	if x.search(p, h, k) >= 0 {
		return 0, 0, corrupt("a key is in it twice")
	}
	i := p.free(groupOf(h))
	p.take(i, tagOf(h))
	*x.slots.at(p, i) = k
	return uint8(i), h, nil
}
