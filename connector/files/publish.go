package files

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"slices"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/storage"
)

// ErrLost is in the error of a job that cannot publish a file: what was to be in it is gone, or something else is in its
// place. Trying again does not help.
var ErrLost = errors.New("data lost")

// commitAttempts is how often a commit that fails for a reason that may pass is tried before the job restarts, which shows
// the error.
const commitAttempts = 3

// publish gives pending parts their final names. It is done in three steps, for all parts together:
//
//	link    the final name, unless it is taken
//	sync    the directory
//	remove  the hidden name
//
// A crash at any moment leaves the part under one of its names or under both, and publishing again completes it. A rename
// would do in one step, but it replaces what has the final name. And without the sync in the middle a crash of the machine
// might keep the removal and not the link: then the part would have no name.
//
// A part that fails does not keep the others from being published.
func publish(ctx context.Context, fsys storage.FS, cs []*weir.Commit[pending], ignoreMissing bool) error {
	p := publisher{fs: fsys, ignoreMissing: ignoreMissing, linked: map[string][]*weir.Commit[pending]{}}
	for _, c := range cs {
		if err := ctx.Err(); err != nil {
			return err // what was linked is published by the next try
		}
		switch err := p.link(&c.Value); {
		case err == nil:
			p.linked[c.Value.Dir] = append(p.linked[c.Value.Dir], c)
		case errors.Is(err, ErrLost):
			c.Fail(err)
		default:
			p.again(c, err)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(p.linked)) {
		p.settle(dir, p.linked[dir])
	}
	return errors.Join(p.errs...)
}

// publisher is one call of publish.
type publisher struct {
	fs            storage.FS
	ignoreMissing bool
	linked        map[string][]*weir.Commit[pending] // by directory
	errs          []error
}

// again asks for another try, or, after some, fails all.
func (p *publisher) again(c *weir.Commit[pending], err error) {
	if c.Attempt < commitAttempts {
		c.Retry()
		return
	}
	p.errs = append(p.errs, fmt.Errorf("files: publishing %s of checkpoint %d: %w", c.Value.path(), c.Value.Checkpoint, err))
}

// settle makes the final names in a directory durable, and removes the hidden ones.
func (p *publisher) settle(dir string, cs []*weir.Commit[pending]) {
	err := p.fs.SyncDir(dir)
	if errors.Is(err, fs.ErrNotExist) && p.ignoreMissing {
		return
	}
	for _, c := range cs {
		if err != nil {
			p.again(c, err)
		} else if err := removeFile(p.fs, c.Value.hidden()); err != nil {
			p.again(c, err)
		}
	}
}

// link gives a part its final name; it may have it already.
func (p *publisher) link(part *pending) error {
	hidden, err := p.fs.Stat(part.hidden())
	if errors.Is(err, fs.ErrNotExist) {
		return p.checkPublished(part)
	}
	if err != nil {
		return err
	}
	if hidden.Size != part.Size {
		return fmt.Errorf("files: %w: the pending file %s has %d bytes, and checkpoint %d had written %d into it (%d records): "+
			"restore an older checkpoint", ErrLost, part.hidden(), hidden.Size, part.Checkpoint, part.Size, part.Records)
	}
	err = p.fs.Link(part.hidden(), part.path())
	switch {
	case errors.Is(err, fs.ErrExist):
		return p.checkPublished(part)
	case errors.Is(err, errors.ErrUnsupported):
		return p.rename(part)
	}
	return err
}

// rename is link for file systems without hard links. Nobody else gives this name to a file, so looking first is enough.
func (p *publisher) rename(part *pending) error {
	if _, err := p.fs.Stat(part.path()); err == nil {
		return p.checkPublished(part)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return p.fs.Rename(part.hidden(), part.path())
}

// checkPublished compares the file that has the final name with the part.
func (p *publisher) checkPublished(part *pending) error {
	file, err := p.fs.Open(part.path())
	if errors.Is(err, fs.ErrNotExist) {
		if p.ignoreMissing {
			return nil
		}
		return fmt.Errorf("files: %w: neither %s nor the pending %s is there, and checkpoint %d had written %d records (%d bytes) "+
			"into it: put the file back or restore an older checkpoint; if a consumer took the published file, see files.IgnoreMissing",
			ErrLost, part.path(), hiddenName(part.Name), part.Checkpoint, part.Records, part.Size)
	}
	if err != nil {
		return err
	}
	size := file.Size()
	crc, err := checksum(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if size != part.Size || crc != part.CRC {
		return fmt.Errorf("files: %w: %s is there with other content (%d bytes, CRC-32C %08x) than checkpoint %d had written "+
			"(%d records, %d bytes, CRC-32C %08x): move it away if it is not the job's, or restore another checkpoint",
			ErrLost, part.path(), size, crc, part.Checkpoint, part.Records, part.Size, part.CRC)
	}
	return nil
}

// checksum reads a file through.
func checksum(file storage.Reader) (uint32, error) {
	h := crc32.New(castagnoli)
	_, err := io.Copy(h, io.NewSectionReader(file, 0, file.Size()))
	return h.Sum32(), err
}
