// Package base holds the words that every floor of the house uses: identifiers of jobs, checkpoints and executions, key
// groups, and event time; and how far names are from each other.
//
// # Invariants
//
//  1. A key group is the top 15 bits of a key's 64-bit hash; there are always 32,768, whatever the parallelism.
//  2. The ranges of a vertex's subtasks are disjoint, in order, and cover all key groups.
//  3. An Attempt is unique for the life of a job: its high half is the run that made it.
//  4. A watermark never goes back; NoTime is before every event time and EndOfTime after.
//
// The package is pure: it starts no goroutine and reads no clock.
package base
