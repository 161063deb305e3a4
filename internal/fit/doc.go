// Package fit says whether a snapshot fits a program: part by part, what becomes of the state that is stored, and where something
// finds no place, what to do about it. It is the one set of these rules. A start asks it before anything runs (package jobmaster), a
// restore while it reads (package state, for types), and so do `weir check` and weirtest.CheckRestore: they cannot disagree.
//
// # Nouns
//
//   - A Program is what takes state back: operators with their declared states, edges, master hooks.
//   - A Report has a Finding for every operator, state, edge and hook, of the program and of the snapshot. Its Verdict is the
//     first thing to look at.
//   - An alias is an old UID of an operator (Operator.Was). Adopt gives what is stored under it to the operator.
//   - Near is an operator of the program that a stored one may have been renamed to.
//
// # Verdicts
//
//	same      the bytes are taken as they are
//	migrate   the types differ, and every value becomes one of the new type; a change is listed for each difference
//	new       the snapshot has nothing of it: it starts empty
//	dropped   nothing takes what is stored, and it may be dropped (-n), or there was nothing in it
//	refused   the job cannot start
//
// # Invariants
//
//  1. A report fits exactly when no finding is refused, and Err is nil exactly then.
//  2. Everything that is stored has a finding: nothing is lost in silence.
//  3. Findings of the same snapshot and program are the same, in the same order.
//
// The package is pure: it does no I/O, starts no goroutine and reads no clock.
package fit
