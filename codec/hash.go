package codec

// Namespaced is the hash of an entry that belongs to a key within a namespace, such as a window or a timer: the key's own 15
// leading bits, so that it lies in the key's group, then 49 bits mixed of both.
func Namespaced(keyHash, namespace uint64) uint64 {
	const below = 1<<49 - 1
	mixed := finalise(keyHash ^ finalise(namespace+0x9e3779b97f4a7c15))
	return keyHash&^below | mixed>>15
}

// finalise is the last step of MurmurHash3 for 64 bits (fmix64, Austin Appleby, public domain): a permutation in which
// every bit of v moves about half of the bits of the result. Nothing cheaper will do: one multiplication spreads numbers
// that follow each other so evenly that all pages of a table fill, and split, at the same moment.
func finalise(v uint64) uint64 {
	v ^= v >> 33
	v *= 0xff51afd7ed558ccd
	v ^= v >> 33
	v *= 0xc4ceb9fe1a85ec53
	v ^= v >> 33
	return v
}
