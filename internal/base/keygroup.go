package base

// KeyGroups is the number of key groups of every job: a key's group is the top 15 bits of its hash.
const KeyGroups = 1 << groupBits

const groupBits = 15

// KeyGroupOf is the key group of a key with this hash.
func KeyGroupOf(hash uint64) int { return int(hash >> (64 - groupBits)) }

// KeyGroupRange is a range of key groups, both ends inclusive.
type KeyGroupRange struct{ First, Last int }

// RangeOf is the range of key groups that a subtask owns (Flink's formula, KeyGroupRangeAssignment).
func RangeOf(subtask, parallelism int) KeyGroupRange {
	return KeyGroupRange{
		First: (subtask*KeyGroups + parallelism - 1) / parallelism,
		Last:  ((subtask+1)*KeyGroups - 1) / parallelism,
	}
}

// Hashes are the least and the largest hash in the range.
func (r KeyGroupRange) Hashes() (least, largest uint64) {
	const below = 64 - groupBits
	return uint64(r.First) << below, uint64(r.Last)<<below | (1<<below - 1)
}

// Intersect is the part of r that is in s too; false: there is none.
func (r KeyGroupRange) Intersect(s KeyGroupRange) (KeyGroupRange, bool) {
	both := KeyGroupRange{max(r.First, s.First), min(r.Last, s.Last)}
	return both, both.First <= both.Last
}

// OwnerOf is the subtask that owns the key group of hash.
func OwnerOf(hash uint64, parallelism int) int {
	return int(hash >> (64 - groupBits) * uint64(parallelism) >> groupBits)
}
