package snapshot

import (
	"errors"

	"github.com/weirstream/weir/internal/base"
)

// Restored is what one subtask of an operator gets back.
type Restored struct {
	// Keyed are handles to read from, each with the range of key groups to take from it: the part of the handle's own range
	// that the subtask owns.
	Keyed []KeyedHandle
	// Lists are in the order of their names, then of the old subtasks; Offsets are the elements to take.
	Lists []ListHandle
	// Ended says that the subtask's data had ended: it neither reads nor fires nor ends again.
	Ended bool
	// Watermark is where every input channel starts from; PendingWatermark, when later, is still to be fired up to.
	Watermark, PendingWatermark base.EventTime
	// Rescaled says that the parallelism is not the old one.
	Rescaled bool
}

// Assign is what the subtask gets of op when the operator runs at the given parallelism.
func Assign(op *Operator, parallelism, subtask int) (Restored, error) {
	return Restored{}, errors.ErrUnsupported
}
