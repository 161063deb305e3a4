package checkpoint

// Coordinator takes the checkpoints of one job.
type Coordinator struct{ out []CoordinatorAction }

// Status is what a Coordinator tells about itself.
type Status struct{ Closed bool }

// NewCoordinator is the coordinator of a job whose tasks are not deployed yet.
func NewCoordinator(cfg Config, graph Graph, recovered Recovered) (*Coordinator, error) {
	return &Coordinator{}, nil
}

// Step takes one event and says what is to be done, in this order. The slice is valid until the next Step.
func (c *Coordinator) Step(now Time, e CoordinatorEvent) []CoordinatorAction { return c.out }

// Deadline is when TimePassed is due; false: not at all.
func (c *Coordinator) Deadline() (Time, bool) { return Never, false }

// Status is a copy that the caller may keep.
func (c *Coordinator) Status() Status { return Status{} }
