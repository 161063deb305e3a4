package rest

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// A failed operation is told by three texts and a fourth field: a Java object, serialised, which Flink's client deserialises and throws.
// Whatever it cannot deserialise it replaces by an exception that says so, and the user never learns what went wrong. So the object
// must be real: throwable.bin is one that Java has written (testflink/throwable), of Flink's class SerializedThrowable, whose strings
// are placeholders:
//
//	... 't' 0 7 "@stack@" ...        TC_STRING, its length in 2 bytes, modified UTF-8
//
// Each is replaced by the text with its own length, or where the text is long by
//
//	... '|' (8 bytes) text ...       TC_LONGSTRING, its length in 8 bytes
//
// which may stand wherever the short one may. Nothing else in the stream counts bytes, and references count objects, which stay as
// many as they were.

//go:embed throwable.bin
var throwableTemplate []byte

const (
	tcString     = 't'
	tcLongString = '|'
	shortMost    = 1<<16 - 1
)

// failure is a failed operation as a client is told of it.
type failure struct {
	Class      string `json:"class"`
	Stack      string `json:"stack-trace"`
	Serialized string `json:"serialized-throwable"`
}

const completionException = "java.util.concurrent.CompletionException"

// failureOf tells of an error as Flink does, where it comes out of a future. The exceptions have no frames: Go has none for errors.
func failureOf(err error) *failure {
	cause := classOf(err) + ": " + err.Error()
	f := &failure{Class: completionException, Stack: fmt.Sprintf("%s: %s\nCaused by: %s\n", completionException, cause, cause)}
	f.Serialized = base64.StdEncoding.EncodeToString(throwable(f.Class, cause, f.Stack))
	return f
}

// classOf is the exception that Flink throws in such a case.
func classOf(err error) string {
	var declined *checkpoint.DeclineError
	var stopped *job.StoppedError
	var f *fault
	switch {
	case errors.As(err, &f) && f.class != "":
		return f.class
	case errors.As(err, &stopped):
		return "org.apache.flink.runtime.scheduler.stopwithsavepoint.StopWithSavepointStoppingException"
	case errors.As(err, &declined):
		return "org.apache.flink.runtime.checkpoint.CheckpointException"
	}
	return "org.apache.flink.util.FlinkException"
}

// throwable is a serialised exception.
func throwable(class, message, stack string) []byte {
	b := throwableTemplate
	for _, s := range [][2]string{{"@class@", class}, {"@message@", message}, {"@stack@", stack}} {
		b = bytes.Replace(b, javaString(s[0]), javaString(s[1]), 1)
	}
	return b
}

// javaString is a string as Java serialises it.
func javaString(s string) []byte {
	text := modifiedUTF8(s)
	if len(text) > shortMost {
		return append(binary.BigEndian.AppendUint64([]byte{tcLongString}, uint64(len(text))), text...)
	}
	return append(binary.BigEndian.AppendUint16([]byte{tcString}, uint16(len(text))), text...)
}

// modifiedUTF8 is Java's own encoding: each UTF-16 unit by itself, and zero in two bytes.
func modifiedUTF8(s string) []byte {
	var b []byte
	for _, unit := range utf16.Encode([]rune(strings.ToValidUTF8(s, "\uFFFD"))) {
		switch {
		case unit != 0 && unit < 0x80:
			b = append(b, byte(unit))
		case unit < 0x800:
			b = append(b, 0xC0|byte(unit>>6), 0x80|byte(unit&0x3F))
		default:
			b = append(b, 0xE0|byte(unit>>12), 0x80|byte(unit>>6&0x3F), 0x80|byte(unit&0x3F))
		}
	}
	return b
}
