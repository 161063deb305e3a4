// Package codec turns values of the user's types into bytes and back, and keys into hashes. It hides how: nothing is
// registered, generated or tagged; everything is derived from the Go type.
package codec
