package config

import "fmt"

// check applies the rules between options. What breaks one is a problem; what merely has no effect is a warning.
func (b *builder) check() {
	b.checkAlignment()
	b.checkPeriods()
	b.checkStorage()
	if b.Get(BackoffInitial) > b.Get(BackoffMax) {
		b.broken(BackoffInitial.Key, "must not be longer than", BackoffMax.Key)
	}
}

func (b *builder) checkAlignment() {
	if !b.Get(Unaligned) {
		if b.Get(AlignedTimeout) > 0 {
			b.idle(AlignedTimeout.Key, "without %s", Unaligned.Key)
		}
		return
	}
	if b.Get(CheckpointMode) != ExactlyOnce {
		b.broken(Unaligned.Key, "needs the mode "+string(ExactlyOnce)+", but there is", CheckpointMode.Key)
	}
	if b.Get(MaxConcurrent) > 1 {
		b.broken(Unaligned.Key, "allows one checkpoint at a time, but there is", MaxConcurrent.Key)
	}
}

func (b *builder) checkPeriods() {
	interval := b.Get(CheckpointInterval)
	switch backlog := b.Get(BacklogInterval); {
	case backlog == 0:
	case interval == 0:
		b.broken(BacklogInterval.Key, "needs checkpoints, but there is", CheckpointInterval.Key)
	case backlog < interval:
		b.broken(BacklogInterval.Key, "must be 0 or at least", CheckpointInterval.Key)
	}
	if b.Get(PauseSources) && interval == 0 {
		b.idle(PauseSources.Key, "without %s: there is no first checkpoint to wait for", CheckpointInterval.Key)
	}
	if b.Get(MinPause) > 0 && b.Get(MaxConcurrent) > 1 && !b.Get(Unaligned) {
		b.idle(MaxConcurrent.Key, "beside %s: with a pause there is one checkpoint at a time", b.cite(MinPause.Key))
	}
}

func (b *builder) checkStorage() {
	switch dir := b.Get(CheckpointDir); {
	case b.Storage() == FilesystemStorage && dir == "":
		b.broken(CheckpointStorage.Key, "needs a directory, but there is", CheckpointDir.Key)
	case b.Storage() == JobManagerStorage && dir != "":
		b.idle(CheckpointDir.Key, "beside %s", b.cite(CheckpointStorage.Key))
	}
}

// broken notes that the option key does not go with another one, unless one of the two was refused anyway.
func (b *builder) broken(key, text, other string) {
	if b.refused[key] || b.refused[other] {
		return
	}
	b.problems = append(b.problems, Problem{
		Key: key, Value: b.text(key), Text: text + " " + b.cite(other), Origin: b.Origin(key),
	})
}

// idle warns that an option was set to no effect.
func (b *builder) idle(key, format string, args ...any) {
	b.warn("%s: %s has no effect "+format, append([]any{b.Origin(key), key}, args...)...)
}

// text is the value that a source has set for an option; "" for a default.
func (b *builder) text(key string) string {
	x, set := b.values[key]
	if !set {
		return ""
	}
	o, _ := find(key)
	return o.format(x.v)
}

// cite names an option with its value and where that was written, for a message about another option.
func (b *builder) cite(key string) string {
	if text := b.text(key); text != "" {
		return fmt.Sprintf("%s = %s (%s)", key, text, b.Origin(key))
	}
	o, _ := find(key)
	return fmt.Sprintf("%s (default: %s)", key, plain(o.describe().Default))
}
