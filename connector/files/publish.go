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

	"github.com/weirstream/weir/internal/storage"
)

// ErrLost is in the error of a job that cannot publish a file: what was to be in it is gone, or something else is in its
// place. Trying again does not help.
var ErrLost = errors.New("data lost")

// publisher gives pending parts their final names. It is done in three steps, for many parts together:
//
//	link    the final name, unless it is taken
//	sync    the directory
//	remove  the hidden name
//
// A crash at any moment leaves the part under one of its names or under both, and publishing again completes it. A rename
// would do in one step, but it replaces what has the final name. And without the sync in the middle a crash of the machine
// might keep the removal and not the link: then the part would have no name.
type publisher struct {
	fs            storage.FS
	ignoreMissing bool
}

// publish gives an error for each part, nil where it is published; ErrLost is in it where it can never be. A part that fails
// does not keep the others back.
func (p publisher) publish(ctx context.Context, parts []pending) []error {
	errs := make([]error, len(parts))
	linked := map[string][]int{} // by directory
	for i := range parts {
		if errs[i] = ctx.Err(); errs[i] == nil {
			errs[i] = p.link(&parts[i])
		}
		if errs[i] == nil {
			linked[parts[i].Dir] = append(linked[parts[i].Dir], i)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(linked)) {
		err := p.fs.SyncDir(dir)
		if errors.Is(err, fs.ErrNotExist) && p.ignoreMissing {
			continue
		}
		for _, i := range linked[dir] {
			if errs[i] = err; err == nil {
				errs[i] = removeFile(p.fs, parts[i].hidden())
			}
		}
	}
	return errs
}

// link gives a part its final name; it may have it already.
func (p publisher) link(part *pending) error {
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
	case errors.Is(err, errors.ErrUnsupported), errors.Is(err, fs.ErrPermission): // different systems say it differently
		return p.rename(part)
	}
	return err
}

// rename is link for file systems without hard links. Nobody else gives this name to a file, so looking first is enough.
func (p publisher) rename(part *pending) error {
	if _, err := p.fs.Stat(part.path()); err == nil {
		return p.checkPublished(part)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return p.fs.Rename(part.hidden(), part.path())
}

// checkPublished compares the file that has the final name with the part.
func (p publisher) checkPublished(part *pending) error {
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
