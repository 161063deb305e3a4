package codec

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// Avro's int and long are one thing: the value in zigzag (0, -1, 1, -2, ... are 0, 1, 2, 3, ...), seven bits a byte, the
// lowest first, the top bit of every byte but the last set.
//
// Nearly every field of a stream's record is one of these, from flags of one byte to nanoseconds of nine, so the loop over
// bytes with its badly predicted end was most of what the codec cost. Instead eight bytes are treated at once: 56 bits are
// spread over eight bytes (or gathered from them) in three steps, by halves, quarters and single bytes, and the length is
// counted from the leading or trailing zeros. One byte has its own short way, which is inlined.

const (
	longBytesMax = 10                    // 64 bits in groups of seven
	carries      = 0x8080_8080_8080_8080 // the top bit of each byte: another one follows
	spreadBits   = 56                    // that eight bytes carry
)

// appendLong writes v.
func appendLong(dst []byte, v int64) []byte {
	u := zigzag(v)
	if u < 0x80 {
		return append(dst, byte(u))
	}
	return appendLonger(dst, u)
}

// appendLonger writes what is already zigzag and needs more than one byte.
func appendLonger(dst []byte, u uint64) []byte {
	start := len(dst)
	if cap(dst)-start < longBytesMax {
		dst = slices.Grow(dst, longBytesMax)
	}
	to := dst[start : start+longBytesMax]
	if u < 1<<spreadBits {
		size := (bits.Len64(u)*9 + 64) / 64 // the bits by seven, rounded up
		follow := uint64(carries) >> (72 - 8*size)
		binary.LittleEndian.PutUint64(to, spread(u)|follow)
		return dst[:start+size]
	}
	binary.LittleEndian.PutUint64(to, spread(u)|carries)
	u >>= spreadBits
	if u < 0x80 {
		to[8] = byte(u)
		return dst[:start+9]
	}
	to[8], to[9] = byte(u)|0x80, byte(u>>7)
	return dst[:start+longBytesMax]
}

// spread puts the low 56 bits of u into the low seven bits of each of eight bytes.
func spread(u uint64) uint64 {
	u = u&0x0000_0000_0fff_ffff | u&0x00ff_ffff_f000_0000<<4
	u = u&0x0000_3fff_0000_3fff | u&0x0fff_c000_0fff_c000<<2
	return u&0x007f_007f_007f_007f | u&0x3f80_3f80_3f80_3f80<<1
}

// gather undoes spread; the top bit of each byte must be zero.
func gather(b uint64) uint64 {
	b = b&0x007f_007f_007f_007f | b&0x7f00_7f00_7f00_7f00>>1
	b = b&0x0000_3fff_0000_3fff | b&0x3fff_0000_3fff_0000>>2
	return b&0x0000_0000_0fff_ffff | b&0x0fff_ffff_0000_0000>>4
}

// long reads the int or long at position at of src, and gives the position behind.
func long(src []byte, at int) (v int64, next int, err error) {
	if at < len(src) && src[at] < 0x80 {
		return unzigzag(uint64(src[at])), at + 1, nil
	}
	return longer(src, at)
}

func longer(src []byte, at int) (v int64, next int, err error) {
	if len(src)-at < 8 {
		return longAtEnd(src, at)
	}
	word := binary.LittleEndian.Uint64(src[at:])
	ends := ^word & carries
	if ends == 0 {
		return longAtEnd(src, at)
	}
	// Keep the bytes up to the first that ends, without the top bits.
	word &= (ends ^ (ends - 1)) &^ carries
	return unzigzag(gather(word)), at + bits.TrailingZeros64(ends)/8 + 1, nil
}

// longAtEnd reads where eight bytes do not suffice or are not there.
func longAtEnd(src []byte, at int) (v int64, next int, err error) {
	if len(src)-at >= 9 && src[at+8] < 0x80 && binary.LittleEndian.Uint64(src[at:])&carries == carries {
		low := binary.LittleEndian.Uint64(src[at:]) &^ carries
		return unzigzag(gather(low) | uint64(src[at+8])<<spreadBits), at + 9, nil
	}
	u, size := binary.Uvarint(src[at:])
	switch {
	case size == 0:
		return 0, at, errShort
	case size < 0:
		return 0, at, errLong
	}
	return unzigzag(u), at + size, nil
}

func zigzag(v int64) uint64 { return uint64(v)<<1 ^ uint64(v>>63) }

func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }
