package files

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/weirstream/weir/internal/storage"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// pending is a part that is complete and hidden: the committable of the sink. It can be published by any process that sees
// the directory.
type pending struct {
	// Dir is the directory, absolute and without symbolic links.
	Dir string
	// Name is what the published file is called.
	Name string
	// Size is its length in bytes, CRC their CRC-32C.
	Size int64
	CRC  uint32
	// Records and Checkpoint are for messages.
	Records, Checkpoint int64
}

// path is the published file.
func (p *pending) path() string { return p.Dir + "/" + p.Name }

// hidden is the file until it is published.
func (p *pending) hidden() string { return p.Dir + "/" + hiddenName(p.Name) }

// parts makes the files of one writer. A part goes through three hands:
//
//	        write               seal              handOver
//	(none) -------> in progress ----> sealed, synced ------> a checkpoint's
//	                      \______________/
//	                           discard
//
// Until a checkpoint has it, a part is the writer's own, which removes it when it is closed. From then on it belongs to whoever
// commits the checkpoint; if that never completes, to the writer's successor, which sweeps it.
type parts struct {
	fs      storage.FS
	options *sinkOptions
	dir     string
	subtask int

	run  string
	next int64 // number of the next part

	file    storage.File // in progress; nil: none
	current pending
	records int64 // of the part in progress, also those that were not written yet
	sealed  []pending
}

// full is true when the part in progress, with so many bytes more, is to end.
func (p *parts) full(more int) bool {
	o := p.options
	return o.rollBytes > 0 && p.current.Size+int64(more) >= o.rollBytes || o.rollRecords > 0 && p.records >= o.rollRecords
}

// write appends b to the part in progress, which it begins where there is none.
func (p *parts) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if p.file == nil {
		if err := p.create(); err != nil {
			return err
		}
	}
	n, err := p.file.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("files: writing %s: %w", p.current.hidden(), err)
	}
	p.current.Size += int64(len(b))
	p.current.CRC = crc32.Update(p.current.CRC, castagnoli, b)
	return nil
}

// create begins a part with the next number of which both names are free. They may be taken: by another job that was started
// from the same checkpoint.
func (p *parts) create() error {
	for {
		part := pending{Dir: p.dir, Name: partName(p.options, p.run, p.subtask, p.next)}
		p.next++
		if _, err := p.fs.Stat(part.path()); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("files: looking for %s: %w", part.path(), err)
		}
		file, err := p.fs.Create(part.hidden())
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("files: creating %s: %w", part.hidden(), err)
		}
		p.file, p.current = file, part
		return nil
	}
}

// seal ends the part in progress; its bytes are durable then, its name is not yet.
func (p *parts) seal() error {
	records := p.records
	p.records = 0
	if p.file == nil {
		return nil
	}
	if err := p.file.Sync(); err != nil {
		return fmt.Errorf("files: syncing %s: %w", p.current.hidden(), err)
	}
	file := p.file
	p.file = nil
	p.current.Records = records
	p.sealed = append(p.sealed, p.current)
	p.current = pending{}
	if err := file.Close(); err != nil {
		return fmt.Errorf("files: closing %s: %w", p.sealed[len(p.sealed)-1].hidden(), err)
	}
	return nil
}

// handOver seals, makes the names durable, and gives up all that was sealed to a checkpoint.
func (p *parts) handOver(checkpoint int64) ([]pending, error) {
	if err := p.seal(); err != nil {
		return nil, err
	}
	if len(p.sealed) == 0 {
		return nil, nil
	}
	if err := p.fs.SyncDir(p.dir); err != nil {
		return nil, fmt.Errorf("files: syncing the directory %s: %w", p.dir, err)
	}
	sealed := p.sealed
	p.sealed = nil
	for i := range sealed {
		sealed[i].Checkpoint = checkpoint
	}
	return sealed, nil
}

// discard removes what was not handed over.
func (p *parts) discard() error {
	var errs []error
	if p.file != nil {
		errs = append(errs, p.file.Close(), removeFile(p.fs, p.current.hidden()))
		p.file = nil
	}
	for i := range p.sealed {
		errs = append(errs, removeFile(p.fs, p.sealed[i].hidden()))
	}
	p.sealed = nil
	return errors.Join(errs...)
}

// removeFile removes a file that may be gone already.
func removeFile(fsys storage.FS, path string) error {
	if err := fsys.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("files: removing %s: %w", path, err)
	}
	return nil
}

// tryDir makes a directory where it is missing, and a file in it, which it removes.
func tryDir(fsys storage.FS, dir string) error {
	if err := storage.MkdirAll(fsys, dir); err != nil {
		return err
	}
	probe := dir + "/.weir-" + newRun() + ".probe"
	file, err := fsys.Create(probe)
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), removeFile(fsys, probe))
}
