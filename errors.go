package weir

// NonRecoverable marks an error that no restart can repair: returned by a function, a source or a sink, it makes the job
// FAILED at once, whatever the restart strategy. errors.Is and errors.As see err.
func NonRecoverable(err error) error {
	if err == nil {
		return nil
	}
	return nonRecoverable{err}
}

type nonRecoverable struct{ error }

// NonRecoverable is what the job master looks for.
func (nonRecoverable) NonRecoverable() bool { return true }

// Unwrap is the error that was marked.
func (e nonRecoverable) Unwrap() error { return e.error }
