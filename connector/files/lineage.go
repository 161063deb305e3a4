package files

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/weirstream/weir/internal/storage"
)

// lineage is what a writer leaves to its successors: the names that were its, and how many of them are used. It is the sink's
// state in a checkpoint, as JSON.
//
// Who succeeds to a lineage removes the hidden files that its dead writers have left. Which are those? Not all that are there:
// parts that the checkpoint holds may still be hidden and wait to be committed, by another subtask even. So the numbers decide.
// Parts below Next are the checkpoint's or an older one's, and are let be; parts from Next on were begun after it, are in no
// history any more, and go. (To ask the checkpoint which parts it holds would not do: it knows those, but a writer does not.)
//
// A lineage has one writer at a time, as each state is restored to one; a writer that gets several, at a lower parallelism,
// goes on with the first and only clears up behind the others.
type lineage struct {
	Version int    `json:"version"`
	Dir     string `json:"dir"`
	Run     string `json:"run"`
	Next    int64  `json:"next"`
}

const lineageVersion = 1

func (l *lineage) encode() ([]byte, error) { return json.Marshal(l) }

func decodeLineage(state []byte) (*lineage, error) {
	var l lineage
	if err := json.Unmarshal(state, &l); err != nil {
		return nil, fmt.Errorf("files: reading the state of a sink's writer: %w", err)
	}
	if l.Version != lineageVersion {
		return nil, fmt.Errorf("files: the state of a sink's writer has version %d, this program knows %d: "+
			"restore it with the version of Weir that wrote it, or a newer one", l.Version, lineageVersion)
	}
	if _, err := hex.DecodeString(l.Run); err != nil || l.Run == "" || l.Next < 0 {
		return nil, fmt.Errorf("files: the state of a sink's writer is damaged: %.200q", state)
	}
	return &l, nil
}

// newRun is a name that nothing else has.
func newRun() string {
	var b [6]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// lineage is what to leave at a checkpoint.
func (p *parts) lineage() *lineage {
	return &lineage{Version: lineageVersion, Dir: p.dir, Run: p.run, Next: p.next}
}

// succeed clears up behind the dead writers of a lineage. Where adopt is set the writer also goes on with its names, behind all
// numbers that were in use, also those of files that it has just removed: a writer that is thought dead may still wake up, and
// remove what it takes for its own.
func (p *parts) succeed(l *lineage, adopt bool) error {
	largest, err := l.sweep(p.fs)
	if err != nil {
		return fmt.Errorf("files: clearing up in %s behind the writer %s: %w", l.Dir, l.Run, err)
	}
	if adopt {
		p.run, p.next = l.Run, max(l.Next, largest+1)
	}
	return nil
}

// sweep removes what dead writers have left, and gives the largest number in use; -1: none.
func (l *lineage) sweep(fsys storage.FS) (largest int64, err error) {
	entries, err := fsys.List(l.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return -1, nil // what was pending there is missed when it is committed
	}
	if err != nil {
		return -1, err
	}
	largest = -1
	var hidden []string
	there := map[string]bool{}
	for _, e := range entries {
		there[e.Name] = true
		name, isHidden := visibleName(e.Name)
		number, ok := l.number(name)
		if !ok {
			continue
		}
		largest = max(largest, number)
		if isHidden {
			hidden = append(hidden, name)
		}
	}
	var dead []string
	for _, name := range hidden {
		// What has both names was published, and the commit did not come to remove the one.
		if number, _ := l.number(name); number >= l.Next || there[name] {
			dead = append(dead, l.Dir+"/"+hiddenName(name))
		}
	}
	return largest, removeSynced(fsys, l.Dir, dead)
}

// removeSynced removes files. First it makes durable what the directory holds: of a part with two names, the published one
// may not be yet.
func removeSynced(fsys storage.FS, dir string, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	if err := fsys.SyncDir(dir); err != nil {
		return err
	}
	for _, path := range paths {
		if err := removeFile(fsys, path); err != nil {
			return err
		}
	}
	return fsys.SyncDir(dir)
}

// partName is <prefix>-<run>-<subtask>-<number><suffix>.
func partName(o *sinkOptions, run string, subtask int, number int64) string {
	return fmt.Sprintf("%s-%s-%d-%d%s", o.prefix, run, subtask, number, o.suffix)
}

const inProgress = ".inprogress"

// hiddenName is what a part is called before it is published.
func hiddenName(name string) string { return "." + name + inProgress }

// visibleName takes a hidden name back; others stay as they are.
func visibleName(name string) (visible string, wasHidden bool) {
	if strings.HasPrefix(name, ".") && strings.HasSuffix(name, inProgress) && len(name) > len(inProgress) {
		return name[1 : len(name)-len(inProgress)], true
	}
	return name, false
}

// number is the number of a part of the lineage, with any prefix, of any subtask, and with any suffix.
func (l *lineage) number(name string) (number int64, ok bool) {
	_, rest, ok := strings.Cut(name, "-"+l.Run+"-")
	if !ok {
		return 0, false
	}
	_, rest, ok = strings.Cut(rest, "-")
	if !ok {
		return 0, false
	}
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	number, err := strconv.ParseInt(rest[:digits], 10, 64)
	return number, err == nil
}
