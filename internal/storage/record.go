package storage

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// Weir's small files in a job's directory are text, so that a person can read them, with a checksum in the last line:
//
//	weir job 2
//	largest 42
//	newest 41
//	open 42
//	first 5
//	left 0
//	origin none 0 ""
//	run 3
//	end "FINISHED" 2
//	crc32c 5f1f4c0a
//
// A title with the version, fields in fixed order, the CRC-32C of all lines before. They are replaced as a whole, by a rename.

// line is one field: its name and its value.
type line struct{ name, value string }

// sealText is the bytes of a small file.
func sealText(title string, lines ...line) []byte {
	var b strings.Builder
	fmt.Fprintln(&b, title)
	for _, l := range lines {
		fmt.Fprintf(&b, "%s %s\n", l.name, l.value)
	}
	fmt.Fprintf(&b, "crc32c %08x\n", snapshot.Checksum(0, []byte(b.String())))
	return []byte(b.String())
}

// openText is the values of a small file, which must have exactly the named fields.
func openText(b []byte, title string, names ...string) ([]string, error) {
	text := string(b)
	body, sum, found := strings.Cut(text, "\ncrc32c ")
	body += "\n"
	if want := fmt.Sprintf("%08x\n", snapshot.Checksum(0, []byte(body))); !found || sum != want {
		return nil, fmt.Errorf("%w: it is cut off, or its checksum is wrong", ErrDamaged)
	}
	lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	if lines[0] != title {
		return nil, fmt.Errorf("%w: it is %q; this build of Weir reads %q", snapshot.ErrVersion, lines[0], title)
	}
	if len(lines)-1 != len(names) {
		return nil, fmt.Errorf("%w: it has %d fields instead of %d", ErrDamaged, len(lines)-1, len(names))
	}
	values := make([]string, len(names))
	for i, name := range names {
		value, found := strings.CutPrefix(lines[i+1], name+" ")
		if !found {
			return nil, fmt.Errorf("%w: line %d is not %s", ErrDamaged, i+2, name)
		}
		values[i] = value
	}
	return values, nil
}

// record is what a job's directory knows of the job, beside its checkpoints.
//
// What the job may go on from is not always what lies there. A newest checkpoint may have been deleted by hand: newest and open
// tell, so that the one before is not taken for it. And newer ones may lie there that were left behind when somebody started the
// job from an older one by its path: left and origin tell. Neither costs a write of its own: what completed is written with the
// id of the next checkpoint, and meanwhile its directory is known to exist.
type record struct {
	largest base.CheckpointID   // ever used
	newest  base.CheckpointID   // that completed, as far as is on record; 0: none above left did
	open    []base.CheckpointID // above newest, ascending: their directories were made, what became of them is not on record
	first   base.CheckpointID   // that completed, or was about to; 0: none ever did, so nothing was ever committed
	left    base.CheckpointID   // ids up to it belong to what was left behind by a start from a path
	origin  origin
	run     int64
	end     string // of the last run that ended; "": none did
	endRun  int64
}

// origin is the snapshot that the job was last started from by its path. It is what the job goes on from until a checkpoint of its
// own completes.
type origin struct {
	mode     originMode
	id       base.CheckpointID
	location string
}

// originMode says whose the origin is.
type originMode string

const (
	noOrigin originMode = "none"     // the job was not started from a path, or has a checkpoint of its own by now
	borrowed originMode = "no-claim" // it is somebody else's
	claimed  originMode = "claim"    // it is the job's, like a checkpoint of its own
	givenUp  originMode = "given-up" // it was claimed, and is to be deleted
)

// use takes an id.
func (r *record) use(id base.CheckpointID) error {
	if id <= r.largest {
		return usedBefore(id, r.largest)
	}
	r.largest = id
	return nil
}

// complete notes that a checkpoint completed.
func (r *record) complete(id base.CheckpointID) { r.newest = max(r.newest, id) }

// begin notes that the directory of a checkpoint was made.
func (r *record) begin(id base.CheckpointID) {
	r.open = append(slices.Clone(r.open), id)
	slices.Sort(r.open)
}

// drop notes that a checkpoint is about to be deleted that did not complete.
func (r *record) drop(id base.CheckpointID) {
	r.open = slices.DeleteFunc(slices.Clone(r.open), func(o base.CheckpointID) bool { return o == id })
}

// giveUp notes that the claimed origin at location is about to be deleted. It may be gone by now: a retirement and a sweep can
// delete it at once.
func (r *record) giveUp(location string) {
	if r.origin.mode == claimed && r.origin.location == location {
		r.origin.mode = givenUp
	}
}

// finish gives up what the job began from: there is nothing more to go on from.
func (r *record) finish() {
	if r.origin.mode == claimed {
		r.origin.mode = givenUp
	} else if r.origin.mode == borrowed {
		r.origin = origin{mode: noOrigin}
	}
}

// leave makes an end of everything so far: nothing of it is a restore point any more.
func (r *record) leave() {
	r.left, r.newest, r.open = r.largest, 0, nil
	r.finish()
}

// startFrom begins anew from a snapshot.
func (r *record) startFrom(o origin) {
	r.largest = max(r.largest, o.id)
	r.leave()
	r.origin = o
	if r.first == 0 {
		r.first = o.id // what it restores is committed
	}
}

// tidy drops what newer entries make useless.
func (r *record) tidy() {
	r.open = slices.DeleteFunc(slices.Clone(r.open), func(o base.CheckpointID) bool { return o <= max(r.newest, r.left) })
	if r.newest > 0 && r.origin.mode == borrowed || r.origin.mode == "" {
		r.origin = origin{mode: noOrigin}
	}
}

const (
	recordTitle  = "weir job 2"
	recordTitle1 = "weir job 1" // without newest, open, left and origin
)

func (r record) encode() []byte {
	return sealText(recordTitle,
		line{"largest", number(r.largest)},
		line{"newest", number(r.newest)},
		line{"open", numbers(r.open)},
		line{"first", number(r.first)},
		line{"left", number(r.left)},
		line{"origin", fmt.Sprintf("%s %d %q", r.origin.mode, r.origin.id, r.origin.location)},
		line{"run", strconv.FormatInt(r.run, 10)},
		line{"end", fmt.Sprintf("%q %d", r.end, r.endRun)})
}

func number(id base.CheckpointID) string { return strconv.FormatInt(int64(id), 10) }

// numbers are ids in one line; "none" stands for no id.
func numbers(ids []base.CheckpointID) string {
	if len(ids) == 0 {
		return "none"
	}
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = number(id)
	}
	return strings.Join(texts, " ")
}

func decodeRecord(b []byte) (r record, err error) {
	var values []string
	title, _, _ := strings.Cut(string(b), "\n")
	if title == recordTitle1 {
		if values, err = openText(b, recordTitle1, "largest", "first", "run", "end"); err == nil {
			none := fmt.Sprintf("%s 0 \"\"", noOrigin)
			values = []string{values[0], "0", "none", values[1], "0", none, values[2], values[3]}
		}
	} else {
		values, err = openText(b, recordTitle, "largest", "newest", "open", "first", "left", "origin", "run", "end")
	}
	if err != nil {
		return record{}, err
	}
	var f fields
	r.largest, r.newest, r.open = f.id(values[0]), f.id(values[1]), f.ids(values[2])
	r.first, r.left, r.origin = f.id(values[3]), f.id(values[4]), f.origin(values[5])
	r.run = f.int(values[6])
	r.end, r.endRun = f.end(values[7])
	if f.err != nil {
		return record{}, fmt.Errorf("%w: %w", ErrDamaged, f.err)
	}
	if err := r.validate(); err != nil {
		return record{}, err
	}
	return r, nil
}

// validate demands that the numbers go together.
func (r *record) validate() error {
	ok := r.first >= 0 && r.first <= r.largest && r.left >= 0 && r.left <= r.largest && r.run >= 1 && r.endRun >= 0 && r.endRun <= r.run
	ok = ok && (r.newest == 0 || r.newest > r.left && r.newest <= r.largest)
	for i, id := range r.open {
		ok = ok && id > max(r.newest, r.left) && id <= r.largest && (i == 0 || id > r.open[i-1])
	}
	switch r.origin.mode {
	case noOrigin:
		ok = ok && r.origin == origin{mode: noOrigin}
	case borrowed, claimed, givenUp:
		ok = ok && r.origin.id >= 1 && r.origin.id <= r.largest && r.origin.location != ""
	default:
		return fmt.Errorf("%w: %q is no origin", ErrDamaged, r.origin.mode)
	}
	if !ok {
		return fmt.Errorf("%w: its numbers cannot be: %+v", ErrDamaged, *r)
	}
	return nil
}

// fields reads values, and keeps the first error.
type fields struct{ err error }

func (f *fields) int(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	f.err = errors.Join(f.err, err)
	return n
}

func (f *fields) id(text string) base.CheckpointID { return base.CheckpointID(f.int(text)) }

func (f *fields) ids(text string) (ids []base.CheckpointID) {
	if text == "none" {
		return nil
	}
	for word := range strings.SplitSeq(text, " ") {
		ids = append(ids, f.id(word))
	}
	return ids
}

func (f *fields) origin(text string) (o origin) {
	words := strings.SplitN(text, " ", 3)
	if len(words) != 3 {
		f.err = errors.Join(f.err, fmt.Errorf("%q is no origin", text))
		return o
	}
	location, err := strconv.Unquote(words[2])
	f.err = errors.Join(f.err, err)
	return origin{mode: originMode(words[0]), id: f.id(words[1]), location: location}
}

func (f *fields) end(text string) (state string, run int64) {
	quoted, err := strconv.QuotedPrefix(text)
	f.err = errors.Join(f.err, err)
	state, err = strconv.Unquote(quoted)
	f.err = errors.Join(f.err, err)
	return state, f.int(strings.TrimPrefix(text[len(quoted):], " "))
}

// pointer says where a synchronous savepoint lies that counts as a checkpoint of the job.
type pointer struct {
	id       base.CheckpointID
	location string
}

const pointerTitle = "weir savepoint pointer 1"

func (p pointer) encode() []byte {
	return sealText(pointerTitle, line{"id", number(p.id)}, line{"location", strconv.Quote(p.location)})
}

func decodePointer(b []byte) (p pointer, err error) {
	values, err := openText(b, pointerTitle, "id", "location")
	if err != nil {
		return pointer{}, err
	}
	id, err1 := strconv.ParseInt(values[0], 10, 64)
	location, err2 := strconv.Unquote(values[1])
	if err := errors.Join(err1, err2); err != nil || id < 1 {
		return pointer{}, fmt.Errorf("%w: its fields cannot be: %w", ErrDamaged, err)
	}
	return pointer{id: base.CheckpointID(id), location: location}, nil
}

// replaceFile gives <dir>/<name> the bytes b: after a crash it has these, or those it had.
func replaceFile(fsys FS, dir, name string, b []byte) error {
	final := path.Join(dir, name)
	tmp := final + tmpSuffix
	if err := ignoreMissing(fsys.Remove(tmp)); err != nil {
		return err
	}
	if err := writeSynced(fsys, tmp, b); err != nil {
		return err
	}
	if err := fsys.Rename(tmp, final); err != nil {
		return errors.Join(err, ignoreMissing(fsys.Remove(tmp)))
	}
	return fsys.SyncDir(dir)
}
