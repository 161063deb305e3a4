// Package config is the one place where a job's options are known: their keys, types, defaults, limits and documentation,
// the sources they come from, and the rules that hold between them. Nothing else in Weir reads the environment, a
// configuration file or Weir's part of the command line.
//
// # Nouns
//
// An [Option] is one key with its type; all of them stand in options.go. A [Setting] is a key, a raw value and its
// [Origin], the words that tell a person where the value was written. A [Layer] is what one source says. [Build] puts layers
// upon each other into a [Config], whose values are typed and checked. [Take] finds Weir's own arguments among a program's.
//
//	flags, rest, err := config.Take(os.Args[1:])     // -s, -p, -n, -D, --config; the rest is the user's
//	cfg, err := config.Load(flags, code)             // config.yaml, then code, then the command line
//	every := cfg.Get(config.CheckpointInterval)      // a time.Duration
//	machine := cfg.Checkpointing()                   // what the options of checkpoints come to together
//
// # Which source wins
//
// The command line wins over code, and code over the file. The person who starts a job knows what this one run needs; the
// program knows what it cannot do without; the file holds what is common to all jobs of a place. Flink agrees.
//
// # Invariants
//
//  1. A key that is not in the registry is an error that names the nearest one, if one is near; it is never ignored.
//  2. All problems of all sources are reported at once, each with key, value, reason and origin.
//  3. A Config holds only values that passed their option's limits and the rules between options. It never changes.
//  4. An option's old names are read everywhere, and never written; their use is a warning.
//  5. docs/config.md is generated from the registry; a test fails when it is stale.
//
// The package starts no goroutine.
package config
