package snapshot

// Sizes are bytes of a checkpoint or of a part of it. A file counts once, though several states lie in it.
type Sizes struct {
	// State is all that a restore needs: also whole files of older checkpoints of which it reads only parts.
	State int64
	// New is what the checkpoint itself has written.
	New int64
}

// Sizes are those of the whole checkpoint.
func (m *Metadata) Sizes() Sizes {
	var s sizer
	_ = m.Handles(s.visit) // which never fails
	return s.Sizes
}

// Sizes are those of what a task has acknowledged.
func (t *TaskState) Sizes() Sizes {
	var s sizer
	for i := range t.Operators {
		o := &t.Operators[i]
		_ = (&Operator{UID: o.UID}).subtaskHandles(&o.Subtask, s.visit)
	}
	return s.Sizes
}

// sizer adds up handles.
type sizer struct {
	Sizes
	files map[string]bool
}

func (s *sizer) visit(o Owner, h *Handle) error {
	if h.File != "" {
		if s.files[h.File] {
			return nil
		}
		if s.files == nil {
			s.files = map[string]bool{}
		}
		s.files[h.File] = true
	}
	s.State += h.Size
	if !o.Refers() {
		s.New += h.Size
	}
	return nil
}
