package storage

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// Weir's small files in a job's directory are text, so that a person can read them, with a checksum in the last line:
//
//	weir job 1
//	largest 42
//	first 5
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
type record struct {
	largest base.CheckpointID // ever used
	first   base.CheckpointID // that completed, or was about to; 0: none ever did, so nothing was ever committed
	run     int64
	end     string // of the last run that ended; "": none did
	endRun  int64
}

const recordTitle = "weir job 1"

func (r record) encode() []byte {
	return sealText(recordTitle,
		line{"largest", strconv.FormatInt(int64(r.largest), 10)},
		line{"first", strconv.FormatInt(int64(r.first), 10)},
		line{"run", strconv.FormatInt(r.run, 10)},
		line{"end", fmt.Sprintf("%q %d", r.end, r.endRun)})
}

func decodeRecord(b []byte) (r record, err error) {
	values, err := openText(b, recordTitle, "largest", "first", "run", "end")
	if err != nil {
		return record{}, err
	}
	largest, err1 := strconv.ParseInt(values[0], 10, 64)
	first, err2 := strconv.ParseInt(values[1], 10, 64)
	run, err3 := strconv.ParseInt(values[2], 10, 64)
	quoted, err4 := strconv.QuotedPrefix(values[3])
	end, err5 := strconv.Unquote(quoted)
	endRun, err6 := strconv.ParseInt(strings.TrimPrefix(values[3][len(quoted):], " "), 10, 64)
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return record{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if first < 0 || first > largest || run < 1 || endRun < 0 || endRun > run {
		return record{}, fmt.Errorf("%w: its numbers cannot be", ErrDamaged)
	}
	return record{largest: base.CheckpointID(largest), first: base.CheckpointID(first), run: run, end: end, endRun: endRun}, nil
}

// pointer says where a synchronous savepoint lies that counts as a checkpoint of the job.
type pointer struct {
	id       base.CheckpointID
	location string
}

const pointerTitle = "weir savepoint pointer 1"

func (p pointer) encode() []byte {
	return sealText(pointerTitle, line{"id", strconv.FormatInt(int64(p.id), 10)}, line{"location", strconv.Quote(p.location)})
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
