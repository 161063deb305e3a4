// Package fstest is what every storage.FS has to pass: the conformance kit for who brings another file system under checkpoints. A user
// cannot bring one yet, as storage.FS is the engine's own; when one can, this becomes a part of package weirtest.
//
// # Nouns
//
//   - A Place is a file system and an empty directory on it.
//   - A check is one thing that the contract says; it has a name, and fails by what it saw.
//
// What a crash of the machine leaves cannot be asked of a file system from outside; where it can, as of storage.MemFS, that has tests of
// its own.
//
// The package starts goroutines only for the checks of concurrent use; they end with the check.
package fstest
