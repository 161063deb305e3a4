package codec

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/zeebo/xxh3"
)

// Hash is the hash of the key that src begins with, as Key.Hash gives it. What cannot be a key is an error.
func (t *Type) Hash(src []byte) (hash uint64, rest []byte, err error) {
	n := t.node
	var buffer [128]byte
	bytes, at, err := n.appendCanonical(buffer[:0], src, 0)
	if err != nil {
		return 0, nil, t.fail(err, at, src)
	}
	switch {
	case n.isUint64(), n.kind == nodeBoolean, n.kind == nodeInt, n.kind == nodeLong:
		return finalise(binary.LittleEndian.Uint64(bytes)), src[at:], nil
	case n.kind == nodeString:
		_, length := binary.Uvarint(bytes)
		bytes = bytes[length:]
	}
	return xxh3.Hash(bytes), src[at:], nil
}

// AppendCanonical appends the canonical bytes of the key that src begins with, as Key.AppendCanonical does.
func (t *Type) AppendCanonical(dst, src []byte) (_, rest []byte, err error) {
	start := len(dst)
	dst, at, err := t.node.appendCanonical(dst, src, 0)
	if err != nil {
		return dst, nil, t.fail(err, at, src)
	}
	if t.node.kind == nodeString {
		_, length := binary.Uvarint(dst[start:])
		dst = append(dst[:start], dst[start+length:]...)
	}
	return dst, src[at:], nil
}

// appendCanonical appends the canonical bytes of the key at src[at:], of a string as they are within others.
func (n *node) appendCanonical(dst, src []byte, at int) (_ []byte, _ int, err error) {
	switch n.kind {
	case nodeInt, nodeLong:
		if n.logical != "" {
			return dst, at, n.noKey()
		}
		v, at, err := long(src, at)
		return binary.LittleEndian.AppendUint64(dst, uint64(v)), at, err
	case nodeString:
		s, at, err := span(src, at)
		return append(binary.AppendUvarint(dst, uint64(len(s))), s...), at, err
	case nodeRecord:
		for _, f := range n.fields {
			if dst, at, err = f.node.appendCanonical(dst, src, at); err != nil {
				return dst, at, inside(f.name, err)
			}
		}
		return dst, at, nil
	case nodeArray:
		_, at, err = n.elements(src, at, func(at int) (_ int, err error) {
			dst, at, err = n.elem.appendCanonical(dst, src, at)
			return at, err
		})
		return dst, at, err
	case nodeBytes, nodeUnion:
		return dst, at, n.noKey()
	}
	return n.appendSizedCanonical(dst, src, at)
}

func (n *node) noKey() error { return fmt.Errorf("a key cannot be of the type %v", n) }

// appendSizedCanonical is appendCanonical for what has the same number of bytes whatever its value.
func (n *node) appendSizedCanonical(dst, src []byte, at int) ([]byte, int, error) {
	size := n.least()
	if size > len(src)-at {
		return dst, at, errShort
	}
	b := src[at : at+size]
	var f float64
	switch {
	case n.kind == nodeBoolean && b[0] > 1:
		return dst, at, fmt.Errorf("a boolean of %d instead of 0 or 1", b[0])
	case n.kind == nodeBoolean:
		return binary.LittleEndian.AppendUint64(dst, uint64(b[0])), at + size, nil
	case n.isUint64():
		return binary.LittleEndian.AppendUint64(dst, binary.BigEndian.Uint64(b)), at + size, nil
	case n.kind == nodeFixed:
		return append(dst, b...), at + size, nil
	case n.kind == nodeFloat:
		f = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	default:
		f = math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	if f != f {
		return dst, at, errNaN
	}
	return appendFloat(dst, f), at + size, nil
}

// AppendKey appends the bytes of a key that is given as JSON, in the form in which AppendJSON writes one. A string may also stand without
// its quotes.
func (t *Type) AppendKey(dst []byte, text string) ([]byte, error) {
	v, err := parseJSON(text)
	if _, isString := v.(string); t.node.kind == nodeString && (err != nil || !isString && !isBase64(v)) {
		v, err = text, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the key %.100q is no JSON: %w; write one of type %v", text, err, t)
	}
	if dst, err = t.node.appendKey(dst, v); err != nil {
		return nil, fmt.Errorf("the key %.100q: %w; write one of type %v", text, err, t)
	}
	return dst, nil
}

// parseJSON reads one value, numbers as they are written.
func parseJSON(text string) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	if err = d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something follows it")
	}
	return v, nil
}

// isBase64 tells whether v stands for a string that is no UTF-8.
func isBase64(v any) bool {
	_, err := bytesOf(v)
	return err == nil
}

// bytesOf is the string that {"base64": "..."} stands for.
func bytesOf(v any) ([]byte, error) {
	object, _ := v.(map[string]any)
	text, ok := object["base64"].(string)
	if !ok || len(object) != 1 {
		return nil, errors.New("it is no string")
	}
	return base64.StdEncoding.DecodeString(text)
}

// appendKey appends the bytes of a value of JSON.
func (n *node) appendKey(dst []byte, v any) ([]byte, error) {
	switch n.kind {
	case nodeRecord:
		return n.appendRecordKey(dst, v)
	case nodeArray:
		return n.appendArrayKey(dst, v)
	case nodeBytes, nodeUnion:
		return dst, n.noKey()
	case nodeBoolean:
		if b, ok := v.(bool); ok {
			return append(dst, map[bool]byte{true: 1}[b]), nil
		}
	case nodeString:
		if s, ok := v.(string); ok {
			return append(appendLong(dst, int64(len(s))), s...), nil
		}
		b, err := bytesOf(v)
		return append(appendLong(dst, int64(len(b))), b...), err
	case nodeFixed:
		if s, ok := v.(string); ok && !n.isUint64() {
			b, err := hex.DecodeString(s)
			if err == nil && len(b) != n.size {
				err = fmt.Errorf("%d bytes, not %d", len(b), n.size)
			}
			return append(dst, b...), err
		}
	}
	if number, ok := v.(json.Number); ok {
		return n.appendNumberKey(dst, string(number))
	}
	return dst, fmt.Errorf("%v is no %v", v, n)
}

func (n *node) appendNumberKey(dst []byte, text string) ([]byte, error) {
	switch {
	case n.isUint64():
		v, err := strconv.ParseUint(text, 10, 64)
		return binary.BigEndian.AppendUint64(dst, v), err
	case n.kind == nodeFloat:
		v, err := strconv.ParseFloat(text, 32)
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(v))), err
	case n.kind == nodeDouble:
		v, err := strconv.ParseFloat(text, 64)
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v)), err
	case n.kind == nodeInt, n.kind == nodeLong && n.logical == "":
		v, err := strconv.ParseInt(text, 10, map[nodeKind]int{nodeInt: 32, nodeLong: 64}[n.kind])
		return appendLong(dst, v), err
	}
	return dst, fmt.Errorf("%s is no %v", text, n)
}

func (n *node) appendRecordKey(dst []byte, v any) (_ []byte, err error) {
	object, ok := v.(map[string]any)
	if !ok {
		return dst, fmt.Errorf("%v is no %v", v, n)
	}
	for _, f := range n.fields {
		part, ok := object[f.name]
		if !ok {
			return dst, fmt.Errorf("the field %s is missing", f.name)
		}
		if dst, err = f.node.appendKey(dst, part); err != nil {
			return dst, inside(f.name, err)
		}
	}
	if len(object) > len(n.fields) {
		return dst, fmt.Errorf("it has fields that %v has not", n)
	}
	return dst, nil
}

func (n *node) appendArrayKey(dst []byte, v any) (_ []byte, err error) {
	list, ok := v.([]any)
	if !ok || n.length != anyLength && len(list) != n.length {
		return dst, fmt.Errorf("%v is no %v", v, n)
	}
	if len(list) > 0 {
		dst = appendLong(dst, int64(len(list)))
	}
	for i, part := range list {
		if dst, err = n.elem.appendKey(dst, part); err != nil {
			return dst, inElement(i, err)
		}
	}
	return append(dst, 0), nil
}
