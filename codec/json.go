package codec

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// AppendJSON appends the value that src begins with as JSON, and passes over it:
//
//	integers               numbers, whatever their size
//	floats                 numbers; "NaN", "Infinity" and "-Infinity"
//	times                  "2026-11-30T09:44:33.000000001Z"
//	strings, text forms    strings; where they are no UTF-8 {"base64": "..."}
//	bytes, binary forms    base64, as a string
//	arrays of bytes        hexadecimal digits, as a string
//	structs                objects
//	maps                   objects where the keys are strings; else lists of pairs, [[key, value], ...]
//	pointers               null, or the value
//	elements of no bytes   their number, as text
func (t *Type) AppendJSON(dst, src []byte) (text, rest []byte, err error) {
	text, at, err := t.node.appendJSON(dst, src, 0, 0)
	if err != nil {
		return dst, nil, t.fail(err, at, src)
	}
	return text, src[at:], nil
}

// appendJSON appends the value of n at src[at:], and gives the position behind it.
func (n *node) appendJSON(dst, src []byte, at, depth int) ([]byte, int, error) {
	if depth >= nestingMax {
		return dst, at, errNesting
	}
	switch n.kind {
	case nodeUnion:
		branch, at, err := long(src, at)
		switch {
		case err != nil:
			return dst, at, err
		case branch == 0:
			return append(dst, "null"...), at, nil
		case branch != 1:
			return dst, at, fmt.Errorf("branch %d of a union of two", branch)
		}
		return n.elem.appendJSON(dst, src, at, depth+1)
	case nodeRecord:
		return n.appendObject(dst, src, at, depth+1)
	case nodeArray:
		return n.appendList(dst, src, at, depth+1)
	case nodeInt, nodeLong:
		v, at, err := long(src, at)
		if n.logical != "" {
			return appendInstant(dst, v), at, err
		}
		return strconv.AppendInt(dst, v, 10), at, err
	case nodeString, nodeBytes:
		b, at, err := span(src, at)
		if n.kind == nodeString || n.narrow == textPair.String() {
			return appendText(dst, b), at, err
		}
		return appendBase64(dst, b), at, err
	}
	return n.appendSized(dst, src, at)
}

// appendSized is appendJSON for what has the same number of bytes whatever its value.
func (n *node) appendSized(dst, src []byte, at int) ([]byte, int, error) {
	size := n.least()
	if size > len(src)-at {
		return dst, at, errShort
	}
	b := src[at : at+size]
	switch {
	case n.kind == nodeBoolean && b[0] > 1:
		return dst, at, fmt.Errorf("a boolean of %d instead of 0 or 1", b[0])
	case n.kind == nodeBoolean:
		dst = strconv.AppendBool(dst, b[0] == 1)
	case n.kind == nodeFloat:
		dst = appendNumber(dst, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), 32)
	case n.kind == nodeDouble:
		dst = appendNumber(dst, math.Float64frombits(binary.LittleEndian.Uint64(b)), 64)
	case n.isUint64():
		dst = strconv.AppendUint(dst, binary.BigEndian.Uint64(b), 10)
	default:
		dst = append(hex.AppendEncode(append(dst, '"'), b), '"')
	}
	return dst, at + size, nil
}

func (n *node) appendObject(dst, src []byte, at, depth int) (_ []byte, _ int, err error) {
	dst = append(dst, '{')
	for i, f := range n.fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendText(dst, []byte(f.name)), ':')
		if dst, at, err = f.node.appendJSON(dst, src, at, depth); err != nil {
			return dst, at, inside(f.name, err)
		}
	}
	return append(dst, '}'), at, nil
}

// appendList is appendJSON for lists and maps.
func (n *node) appendList(dst, src []byte, at, depth int) ([]byte, int, error) {
	if n.elem.least() == 0 {
		count, at, err := n.elements(src, at, nil)
		return fmt.Appendf(dst, `"%d elements of no bytes"`, count), at, err
	}
	object, err := n.isObject(src, at, depth)
	if err != nil {
		return dst, at, err
	}
	open, element, end := byte('['), n.elem.appendJSON, byte(']')
	switch {
	case object:
		open, element, end = '{', n.elem.appendMember, '}'
	case n.isMap():
		element = n.elem.appendPair
	}
	dst = append(dst, open)
	first := true
	_, at, err = n.elements(src, at, func(at int) (int, error) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		var err error
		dst, at, err = element(dst, src, at, depth)
		return at, err
	})
	return append(dst, end), at, err
}

// appendMember is appendJSON for an entry of a map whose keys are text.
func (n *node) appendMember(dst, src []byte, at, depth int) ([]byte, int, error) {
	key, at, err := span(src, at)
	if err != nil {
		return dst, at, inside("[key]", err)
	}
	return n.fields[1].node.appendJSON(append(appendText(dst, key), ':'), src, at, depth)
}

// appendPair is appendJSON for an entry of any other map.
func (n *node) appendPair(dst, src []byte, at, depth int) ([]byte, int, error) {
	dst, at, err := n.fields[0].node.appendJSON(append(dst, '['), src, at, depth)
	if err != nil {
		return dst, at, inside("[key]", err)
	}
	dst, at, err = n.fields[1].node.appendJSON(append(dst, ','), src, at, depth)
	return append(dst, ']'), at, err
}

// isObject tells whether the list at src[at:] is a map that JSON has an object for: all its keys are text.
func (n *node) isObject(src []byte, at, depth int) (bool, error) {
	if !n.isMap() || n.elem.fields[0].node.kind != nodeString {
		return false, nil
	}
	text := true
	_, _, err := n.elements(src, at, func(at int) (int, error) {
		key, at, err := span(src, at)
		if err != nil {
			return at, err
		}
		text = text && utf8.Valid(key)
		return n.elem.fields[1].node.skip(src, at, depth)
	})
	return text, err
}

// elements calls visit with the position of each element of the list at src[at:], and goes on where it says; elements of no bytes are
// counted only.
func (n *node) elements(src []byte, at int, visit func(at int) (next int, err error)) (done, next int, err error) {
	m := operand{least: n.elem.least()}
	for {
		count, next, err := m.block(src, at)
		if at = next; count == 0 || err != nil {
			return done, at, err
		}
		if m.least == 0 {
			done += count
			continue
		}
		for ; count > 0; count-- {
			if at, err = visit(at); err != nil {
				return done, at, inElement(done, err)
			}
			done++
		}
	}
}

// appendInstant appends nanoseconds since 1970, or the zero time, as text.
func appendInstant(dst []byte, v int64) []byte {
	var t time.Time
	if v != zeroTime {
		t = time.Unix(0, v).UTC()
	}
	return append(t.AppendFormat(append(dst, '"'), time.RFC3339Nano), '"')
}

func appendNumber(dst []byte, v float64, bits int) []byte {
	switch {
	case v != v:
		return append(dst, `"NaN"`...)
	case math.IsInf(v, 0):
		return append(dst, map[bool]string{false: `"Infinity"`, true: `"-Infinity"`}[v < 0]...)
	}
	format := byte('f')
	if size := math.Abs(v); size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, v, format, -1, bits)
}

func appendBase64(dst, b []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(dst, '"'), b), '"')
}

// appendText appends a string of JSON.
func appendText(dst, s []byte) []byte {
	if !utf8.Valid(s) {
		return append(appendBase64(append(dst, `{"base64":`...), s), '}')
	}
	dst = append(dst, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = fmt.Appendf(dst, `\u%04x`, c)
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
