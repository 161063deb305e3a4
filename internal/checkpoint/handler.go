package checkpoint

// BarrierHandler is the checkpoint half of one subtask.
type BarrierHandler struct{ out []HandlerAction }

// HandlerStatus is what a BarrierHandler tells about itself.
type HandlerStatus struct{ Blocked int }

// NewBarrierHandler is the handler of a subtask that has read nothing yet.
func NewBarrierHandler(cfg HandlerConfig) *BarrierHandler { return &BarrierHandler{} }

// Step takes one event and says what is to be done, in this order. The slice is valid until the next Step.
func (h *BarrierHandler) Step(now Time, e HandlerEvent) []HandlerAction { return h.out }

// Deadline is when AlarmRang is due; false: not at all.
func (h *BarrierHandler) Deadline() (Time, bool) { return Never, false }

// Status is a copy that the caller may keep.
func (h *BarrierHandler) Status() HandlerStatus { return HandlerStatus{} }
