package storage

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"path"
	"strings"

	"github.com/weirstream/weir/internal/snapshot"
)

// Snapshots without their job: what a tool reads that looks at one, and how it makes one.

// LoadMetadata is ReadMetadata without a look at the files that are named: they may be missing or damaged.
func LoadMetadata(fsys FS, spelt string) (m *snapshot.Metadata, location string, err error) {
	location, err = locate(fsys, spelt)
	if err != nil {
		return nil, "", err
	}
	name := path.Join(location, metadataName)
	b, err := readFile(fsys, name)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, "", notThere(fsys, location, err)
	}
	if err != nil {
		return nil, "", fmt.Errorf("storage: reading %s: %w", name, err)
	}
	if m, err = snapshot.Decode(b); err != nil {
		return nil, "", fmt.Errorf("storage: %s: %w", name, err)
	}
	return m, location, nil
}

// FilePath is where the file of a handle lies, of a snapshot at location.
func FilePath(location string, h snapshot.Handle) string { return filePath(location, h.File) }

// IsOwnName reports whether a name in a snapshot's directory is one of Weir's own, and not a file of state.
func IsOwnName(name string) bool {
	return name == metadataName || name == goneName || name == claimName || strings.HasSuffix(name, tmpSuffix)
}

// MakeSnapshot makes the directory of a snapshot that comes from no running job. It must not be there, or be empty. Of several who try at
// once one succeeds: who makes the file, which means nothing, that the metadata is written to.
func MakeSnapshot(fsys FS, spelt string) (location string, err error) {
	location, err = Resolve(fsys, spelt)
	if err == nil {
		err = MkdirAll(fsys, location)
	}
	if err != nil {
		return "", err
	}
	entries, err := fsys.List(location)
	switch {
	case err != nil:
		return "", fmt.Errorf("storage: %s: %w", location, err)
	case len(entries) > 0:
		return "", fmt.Errorf("storage: %s is not empty, there is %s in it; name a directory that is empty, or not there: %w", location,
			entries[0].Name, iofs.ErrExist)
	}
	if err := writeSynced(fsys, path.Join(location, metadataName+tmpSuffix), nil); err != nil {
		return "", fmt.Errorf("storage: %s: %w", location, err)
	}
	return location, nil
}

// PublishSnapshot completes what MakeSnapshot has begun: all or nothing, durable, and never over another one.
func PublishSnapshot(fsys FS, location string, m *snapshot.Metadata) error {
	_, err := publish(fsys, location, m)
	return err
}

// DropSnapshot takes back what MakeSnapshot has begun.
func DropSnapshot(fsys FS, location string) error { return discard(fsys, location) }
