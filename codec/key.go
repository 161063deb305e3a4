package codec

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/zeebo/xxh3"
)

// Key hashes keys, and turns them into bytes that are equal exactly when the keys are. It may be used from any number of
// goroutines at once.
type Key[K comparable] struct {
	codec   *Codec[K]
	program *keyProgram
	root    opcode // of a key that is one integer, boolean, string or array of bytes; opArray: any other
	length  int    // of an array of bytes
	floats  bool
}

// KeyFor derives the key codec of K. What cannot be a key is refused with a *RefusedError that says what to use instead:
// interfaces, pointers, channels, time.Time, opaque types, and structs with any of those.
func KeyFor[K comparable]() (*Key[K], error) {
	t := reflect.TypeFor[K]()
	s, err := shapeOf(t)
	if err != nil {
		return nil, err
	}
	if err := canonical(t, s, "", "a key"); err != nil {
		return nil, err
	}
	k := &Key[K]{codec: codecOf[K](s), program: keyProgramOf(s), root: opArray, length: s.length}
	k.floats = k.program.hasFloats()
	switch s.form {
	case formBool, formInt, formUint, formUint64, formString, formFixed:
		k.root = codeOf(s)
	}
	return k, nil
}

// Codec is the codec of the keys.
func (k *Key[K]) Codec() *Codec[K] { return k.codec }

// AlwaysValid tells that Valid never fails: there are no floats in K.
func (k *Key[K]) AlwaysValid() bool { return !k.floats }

// Valid refuses a key with a NaN in it, which would never be found again.
func (k *Key[K]) Valid(v K) error {
	if !k.floats {
		return nil
	}
	if err := k.program.valid(unsafe.Pointer(&v)); err != nil {
		return fmt.Errorf("codec: key %v: %w", reflect.TypeFor[K](), err)
	}
	return nil
}

// AppendCanonical writes the canonical bytes of v behind dst. Two valid keys are equal exactly when their bytes are.
func (k *Key[K]) AppendCanonical(dst []byte, v K) []byte {
	if k.root == opString {
		return append(dst, *(*string)(unsafe.Pointer(&v))...)
	}
	return k.program.append(dst, unsafe.Pointer(&v))
}

// Hash is the frozen hash of v. Its 15 leading bits are the key group. It allocates only for keys with more than 128
// canonical bytes, strings and arrays of bytes aside.
func (k *Key[K]) Hash(v K) uint64 { return k.hash(unsafe.Pointer(&v)) }

func (k *Key[K]) hash(v unsafe.Pointer) uint64 {
	switch k.root {
	case opInt64, opUint64:
		return finalise(*(*uint64)(v))
	case opString:
		return xxh3.HashString(*(*string)(v))
	case opFixed:
		return xxh3.Hash(unsafe.Slice((*byte)(v), k.length))
	case opArray:
		var buffer [128]byte
		return xxh3.Hash(k.program.append(buffer[:0], v))
	}
	return finalise(integerAt(k.root, v))
}

// HashAll hashes the keys ks into dst, which is as long.
func (k *Key[K]) HashAll(dst []uint64, ks []K) {
	dst = dst[:len(ks)]
	first := unsafe.Pointer(unsafe.SliceData(ks))
	switch k.root {
	case opInt64, opUint64:
		for i, v := range unsafe.Slice((*uint64)(first), len(ks)) {
			dst[i] = finalise(v)
		}
	case opInt32:
		for i, v := range unsafe.Slice((*int32)(first), len(ks)) {
			dst[i] = finalise(uint64(v))
		}
	case opUint32:
		for i, v := range unsafe.Slice((*uint32)(first), len(ks)) {
			dst[i] = finalise(uint64(v))
		}
	case opString:
		for i, v := range unsafe.Slice((*string)(first), len(ks)) {
			dst[i] = xxh3.HashString(v)
		}
	default:
		for i := range ks {
			dst[i] = k.hash(unsafe.Pointer(&ks[i]))
		}
	}
}
