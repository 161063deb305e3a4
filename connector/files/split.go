package files

import (
	"fmt"

	"github.com/weirstream/weir"
)

// Split is a range of bytes of a file, and how far its lines were read. It owns the lines that begin in the range, also the
// end of the last one, which may lie behind it:
//
//	          Start               End
//	............|...................|...............
//	    line 1     |  line 2   |  line 3      |
//	               \_______ this split's _____/
//
// So every line is owned by one split, however a file is cut.
type Split struct {
	// Path is absolute.
	Path string
	// Start and End are the range: from Start, up to but not including End.
	Start, End int64
	// Offset is the position: lines that begin before it were emitted. It is Start, or where a line begins, or at or behind
	// End, where all were.
	Offset int64
	// Size is the length of the file when it was found.
	Size int64
}

// SplitID is the path and the beginning, such as "/var/log/a.log@67108864".
func (s Split) SplitID() string { return fmt.Sprintf("%s@%d", s.Path, s.Start) }

// check tells why the split cannot be one that this package made.
func (s *Split) check() error {
	if s.Path == "" || s.Start < 0 || s.End < s.Start || s.Size < s.End || s.Offset < s.Start || s.Offset > s.Size {
		return weir.NonRecoverable(fmt.Errorf("files: no file has a split %+v: the checkpoint is not one of this source", *s))
	}
	return nil
}

// cut divides a file into splits. Where the last one would be less than half as long as the others, it is added to the one
// before.
func cut(path string, size, splitSize int64) []Split {
	var splits []Split
	for start := int64(0); start < size; {
		end := start + splitSize
		if size-start-splitSize < splitSize/2 { // and not end+splitSize/2 > size, which may overflow
			end = size
		}
		splits = append(splits, Split{Path: path, Start: start, End: end, Offset: start, Size: size})
		start = end
	}
	return splits
}
