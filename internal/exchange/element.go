package exchange

import (
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
)

// Payload is a sealed batch: read-only, shared by reference counting.
type Payload interface {
	Len() int   // records
	Bytes() int // that the records take here, without what they point to
	Retain(n int)
	Release()
}

// Kind says what an element is.
type Kind uint8

const (
	// Data carries a Payload.
	Data Kind = iota
	// Watermark carries Time: no record at or before it follows.
	Watermark
	// Status says in Idle whether the channel holds watermarks back.
	Status
	// Barrier separates what belongs to a checkpoint from what does not.
	Barrier
	// CancelMarker says that the checkpoint ID will not be aligned.
	CancelMarker
	// EndOfData says that no record follows; Drain, that the end is the input's own.
	EndOfData
	// EndOfPartition is the last element of a channel.
	EndOfPartition
)

// Element is what travels in a channel.
type Element struct {
	Kind    Kind
	Idle    bool
	Drain   bool
	Time    base.EventTime
	ID      base.CheckpointID
	Payload Payload
	Barrier *checkpoint.Barrier
}
