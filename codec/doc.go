// Package codec turns values of the user's types into bytes and back, and keys into hashes. It hides how: no type is
// registered, no code generated; everything is derived from the Go type, once, when a job graph is built.
//
// The bytes are Avro binary of a schema that the package derives too, so whatever Weir writes, an Avro reader in any
// language opens. docs/format/codec.md draws them, and has the vectors of the key hash.
//
// # Nouns
//
//   - A shape is what the package knows of a Go type: a graph with the same cycles. The rest is derived from it.
//   - A program is a flat list of operations that appends and decodes the values of a shape; a cloner one that copies them;
//     a keyProgram one that writes canonical bytes. None uses reflection for a record of plain fields.
//   - A Codec[T] is these for one T; a Key[K] adds what keys need.
//   - A node is what a schema says; a resolver makes the program that reads values of one schema as values of another, or
//     says what keeps it from that. A Reader[T] is such a program.
//   - An opaque type is one whose structure cannot be seen (it has unexported fields) but which brings its own bytes, by
//     MarshalBinary and UnmarshalBinary or MarshalText and UnmarshalText. Structure wins where it can be seen.
//
// # Invariants
//
//  1. Append and Decode are inverse, except that an empty slice comes back nil, a nil map empty, a time in UTC, a field
//     tagged weir:"-" zero, and that a pointer met twice becomes two.
//  2. Equal values have equal bytes (maps are ordered), opaque parts aside.
//  3. The bytes are those that github.com/twmb/avro writes with the same schema. Only the tests use it, as their oracle.
//  4. Decode gives a value or an error for any bytes: it never panics, and never makes more than the bytes justify.
//  5. What a Codec read shares no memory with the bytes it was read from, nor a clone with its original, strings aside.
//  6. Two valid keys are equal exactly when their canonical bytes are.
//  7. The hash of a key depends on its canonical bytes alone and is frozen for ever: it says where saved state lies.
//  8. Schema text is stable: the same type gives the same text in every process. Versions may add attributes, and read what older ones wrote.
//  9. Values that nest more than 10,000 deep, as those that contain themselves do, are errors.
//
// # Limits
//
// A string may hold any bytes and is written as it is; readers of other languages expect UTF-8. A decoder takes blocks of any
// number and size, as other writers make them. Integers of other sizes are read if the value fits.
//
// The package is pure: it starts no goroutine, keeps no state outside of its values, and Codec and Key are safe for any
// number of goroutines because nothing changes them.
package codec
