// Package avrofile writes and reads rows in Avro object container files, each with an index beside it. It hides the
// container: header, blocks, sync markers, checksums, and how the schemas of several columns become one.
//
// # Nouns
//
//   - A row is Avro binary of a record, one field for each column. Whoever writes or reads rows knows their columns; here they
//     are bytes.
//   - The order of a row is a number that never falls from row to row: a hash, or the row's own number.
//   - A block is some rows in succession. Where one ends means nothing.
//   - The index says of each block the order of its first row, where it is, how many rows it has, and its checksum.
//
// docs/format/savepoint.md draws both files. The first is for everybody: any Avro reader opens it. The index is for a reader
// that wants the rows of a range and no other, and that uses no byte which was not checked.
//
// # Invariants
//
//  1. Any Avro reader reads what a Writer wrote, without the index.
//  2. A Reader gives rows only out of blocks whose checksum is that of the index, and whose container fits it.
//  3. Bytes lead to an error or to rows, never to a panic, and to no more memory than there are bytes.
//  4. Equal rows, columns and properties make equal bytes.
//
// The package is pure. A Writer or a Reader is for one goroutine at a time.
package avrofile
