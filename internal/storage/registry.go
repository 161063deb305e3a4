package storage

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weirstream/weir/internal/base"
)

// registry counts which completed checkpoints name which shared files, so that a file goes with the last one that names it.
//
//	chk-7    names  5-counts  7-counts             5-counts 2    when chk-7 is dropped: 7-counts 1, and 5-counts 1
//	chk-8    names  5-counts  7-counts  8-counts   7-counts 2    when chk-8 is dropped too: nobody names any of them
//	                                               8-counts 1
//
// Only what is completed counts, or is about to be. A pending checkpoint needs no entry: what it refers to is either a file of its own,
// which has its id in the name, or one of its base, which is completed and is not given up before the pending one has ended. So
// nothing has to be taken back when acknowledgements are lost, late or doubled, and the whole registry can be made again from the
// metadata that is there. (Flink's counts with every acknowledgement, and had to learn to give up placeholders, duplicates and orphans.)
//
// A checkpoint whose metadata cannot be read may name any file that was there when it was taken: those of ids up to its own. A person
// may yet repair it.
type registry struct {
	named  map[string][]string          // by the checkpoint's location: the files that it names, each once
	count  map[string]int               // by file: how many checkpoints name it; never 0
	unread map[string]base.CheckpointID // by location
}

func newRegistry() *registry {
	return &registry{named: map[string][]string{}, count: map[string]int{}, unread: map[string]base.CheckpointID{}}
}

// add counts the files that the checkpoint at location names. Of one that is counted already nothing changes.
func (r *registry) add(location string, files []string) {
	if _, known := r.named[location]; known {
		return
	}
	files = slices.Compact(slices.Sorted(slices.Values(files)))
	r.named[location] = files
	for _, f := range files {
		r.count[f]++
	}
}

// addUnread keeps what a checkpoint may name that cannot be read.
func (r *registry) addUnread(location string, id base.CheckpointID) { r.unread[location] = id }

// drop takes a checkpoint out, and gives the files that it named and nobody names any more.
func (r *registry) drop(location string) (free []string) {
	delete(r.unread, location)
	files := r.named[location]
	delete(r.named, location)
	for _, f := range files {
		if r.count[f]--; r.count[f] == 0 {
			delete(r.count, f)
		}
	}
	return slices.DeleteFunc(files, func(f string) bool { return !r.isFree(f) })
}

// isCounted reports that a completed checkpoint is known to name the file.
func (r *registry) isCounted(file string) bool { return r.count[file] > 0 }

// isFree reports that no completed checkpoint names the file, as far as anybody can know.
func (r *registry) isFree(file string) bool {
	id, ok := sharedID(file)
	if !ok || r.isCounted(file) {
		return false
	}
	for _, unread := range r.unread {
		if id <= unread {
			return false
		}
	}
	return true
}

// sharedFileName is how a shared file is called: after the checkpoint that has written it, whose id is never used again. So no two uploads
// ever want the same name.
func sharedFileName(id base.CheckpointID, name string) string {
	return strconv.FormatInt(int64(id), 10) + "-" + fileName(name)
}

// sharedID is the id in the name of a shared file; what has none is not ours.
func sharedID(file string) (base.CheckpointID, bool) {
	digits, _, found := strings.Cut(file, "-")
	id, err := strconv.ParseInt(digits, 10, 64)
	return base.CheckpointID(id), found && err == nil && id > 0 && digits == strconv.FormatInt(id, 10)
}
