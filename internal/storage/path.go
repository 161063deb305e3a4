package storage

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/weirstream/weir/internal/snapshot"
)

// The names in a job's directory (docs/format/checkpoint.md). Those with an underscore are Weir's own.
const (
	metadataName  = "_metadata"
	goneName      = "_metadata.gone" // what is being deleted by the names in it
	claimName     = "_claimed"
	recordName    = "_job"
	lockName      = "_lock"
	pointerPrefix = "_savepoint-"
	chkPrefix     = "chk-"
	sharedName    = "shared"
	taskOwnedName = "taskowned"
	tmpSuffix     = ".tmp"
)

var scheme = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*):(.*)$`)

// Resolve turns a path as a person writes it into the one path of what it names: absolute, clean, without symbolic links.
// Relative paths begin at the working directory; the scheme file: may stand before it. What does not exist yet is fine.
func Resolve(fsys FS, spelt string) (string, error) {
	local, err := localPath(spelt)
	if err != nil {
		return "", err
	}
	resolved, err := fsys.Resolve(local)
	if err != nil {
		return "", fmt.Errorf("storage: path %q: %w", spelt, err)
	}
	return resolved, nil
}

// localPath takes the scheme off.
func localPath(spelt string) (string, error) {
	if spelt == "" {
		return "", errors.New("storage: the path is empty")
	}
	parts := scheme.FindStringSubmatch(spelt)
	switch {
	case parts == nil:
		return spelt, nil
	case !strings.EqualFold(parts[1], "file"):
		return "", fmt.Errorf("storage: path %q: the scheme %s: is not supported, only file: and plain paths are (a relative path "+
			"with a colon is written ./%s)", spelt, parts[1], spelt)
	case parts[2] == "":
		return "", fmt.Errorf("storage: path %q names nothing", spelt)
	}
	local, hasHost := strings.CutPrefix(parts[2], "//")
	if !hasHost {
		return parts[2], nil
	}
	if host, _, _ := strings.Cut(local, "/"); host != "" && host != "localhost" {
		return "", fmt.Errorf("storage: path %q: %q stands where a host is named; write file:///%s", spelt, host, local)
	}
	if _, after, found := strings.Cut(local, "/"); found {
		return "/" + after, nil
	}
	return "", fmt.Errorf("storage: path %q names nothing", spelt)
}

// ReadMetadata reads the checkpoint or savepoint that path names: its directory or the _metadata file in it, in any spelling
// that Resolve takes. All files that it names must be there with their sizes; their checksums are verified by OpenHandle.
func ReadMetadata(fsys FS, spelt string) (m *snapshot.Metadata, location string, err error) {
	location, err = locate(fsys, spelt)
	if err != nil {
		return nil, "", err
	}
	m, err = readMetadata(fsys, location)
	if errors.Is(err, iofs.ErrNotExist) && !errors.Is(err, ErrDamaged) {
		return nil, "", notThere(fsys, location, err)
	}
	if err != nil {
		return nil, "", err
	}
	return m, location, nil
}

// locate is the directory that path names, or the directory of the _metadata that it names.
func locate(fsys FS, spelt string) (location string, err error) {
	resolved, err := Resolve(fsys, spelt)
	if err != nil {
		return "", err
	}
	if path.Base(resolved) == metadataName {
		resolved = path.Dir(resolved)
	}
	entry, err := fsys.Stat(resolved)
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		return "", fmt.Errorf("storage: no checkpoint at %s: there is no such directory: %w", resolved, err)
	case err != nil:
		return "", fmt.Errorf("storage: checkpoint %s: %w", resolved, err)
	case !entry.Dir:
		return "", fmt.Errorf("storage: %s is a file: name a checkpoint's directory, or the %s in it", spelt, metadataName)
	}
	return resolved, nil
}

// notThere says that a directory has no metadata.
func notThere(fsys FS, location string, err error) error {
	return fmt.Errorf("storage: no checkpoint at %s: there is no %s in it%s: %w", location, metadataName, whatIsThere(fsys, location), err)
}

// whatIsThere helps a person who named the directory above a checkpoint.
func whatIsThere(fsys FS, dir string) string {
	entries, err := fsys.List(dir)
	if err != nil {
		return ""
	}
	var inside []string
	for _, e := range entries {
		if _, err := fsys.Stat(path.Join(dir, e.Name, metadataName)); e.Dir && err == nil {
			inside = append(inside, e.Name)
		}
	}
	if len(inside) == 0 {
		return ""
	}
	return fmt.Sprintf(" (but in its directories %s there is)", strings.Join(inside, ", "))
}

// readMetadata reads <location>/_metadata and verifies that what it names is there.
func readMetadata(fsys FS, location string) (*snapshot.Metadata, error) {
	name := path.Join(location, metadataName)
	b, err := readFile(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("storage: reading %s: %w", name, err)
	}
	m, err := snapshot.Decode(b)
	if err != nil {
		return nil, fmt.Errorf("storage: %s cannot be restored: %w", name, err)
	}
	if err := verifyFiles(fsys, location, m); err != nil {
		return nil, err
	}
	return m, nil
}

// verifyFiles demands that every file that m names is there with its size.
func verifyFiles(fsys FS, location string, m *snapshot.Metadata) error {
	seen := map[string]int64{}
	return m.Handles(func(owner snapshot.Owner, h *snapshot.Handle) error {
		if h.File == "" {
			return nil
		}
		name := filePath(location, h.File)
		size, known := seen[name]
		if !known {
			entry, err := fsys.Stat(name)
			if err != nil {
				return fmt.Errorf("storage: checkpoint %s cannot be restored: its file %s (%v) is missing or unreadable: %w",
					location, name, owner, markMissing(err))
			}
			size = entry.Size
			seen[name] = size
		}
		if size != h.Size {
			return fmt.Errorf("storage: checkpoint %s cannot be restored: its file %s (%v) is %w: it has %d bytes, but %d were written",
				location, name, owner, ErrDamaged, size, h.Size)
		}
		return nil
	})
}

// markMissing marks a missing file of a published checkpoint as damage: it was there, and waiting does not bring it back.
func markMissing(err error) error {
	if errors.Is(err, iofs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// filePath is where a handle's file lies.
func filePath(location, file string) string {
	if path.IsAbs(file) {
		return file
	}
	return path.Join(location, file)
}
