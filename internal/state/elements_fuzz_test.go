package state

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/weirstream/weir/internal/snapshot"
)

// FuzzElements: the bytes are the elements of an operator's lists of every kind, in a file whose checksums are right.
func FuzzElements(f *testing.F) {
	f.Add([]byte{3, 4, 'a', 'b', 1, 0})
	f.Add([]byte{5, 4, 2, 4, 0, 0xff})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		s := newOpState(t)
		var file bytes.Buffer
		w := fileWriter{w: &file}
		must(t, w.begin(version1))
		at := block{off: w.off, length: len(b), count: 1, crc: crc32.Checksum(b, castagnoli)}
		must(t, w.write(b))
		trailer := binary.AppendUvarint([]byte{fileOperator}, uint64(len(s.ops.lists)))
		for _, l := range s.ops.lists {
			trailer = append(appendSchema(trailer, l.schema()), byte(l.mode()))
			trailer = appendBlocks(trailer, []block{at})
		}
		must(t, w.end(trailer))
		for _, l := range s.ops.lists {
			h := snapshot.ListHandle{Name: l.spec().Name, Mode: l.mode(), Offsets: []int64{at.off}}
			_ = s.ops.Restore(bytes.NewReader(file.Bytes()), int64(file.Len()), h)
		}
		s.show()
	})
}
