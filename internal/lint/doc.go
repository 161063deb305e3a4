// Package lint holds the rules of this repository that the compiler and vet do not know, as a test over its own source.
//
// A [Rule] looks at a [Tree], which is the source of the module, parsed but not type-checked (so the whole test takes less
// than a second), and reports each place that breaks it as a [Finding]: where, what, and what to do instead. The rules:
//
//   - floors: imports only go down the house; every package has a floor (floors.go has the list, and why an edge is forbidden)
//   - purity: pure packages do no I/O, start no goroutine and read no clock
//   - environment: only internal/config reads the environment
//   - doc.go: every package has one
//   - docstrings: every exported name has one
//   - sealed switches: a type switch over a closed set covers every member
//   - goroutines: they start in functions named startX or runX
//   - sleeps: no test sleeps, except in the bubbles of testing/synctest
//   - words: nothing in the repository tells where and how it was written
//
// A new rule is a Rule in the list of rules.go and a case of rules_test.go that breaks it.
package lint
