package weirtest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
)

// journal keeps what a job logs: it is a slog.Handler.
type journal struct {
	mu    sync.Mutex
	lines []string // protected by mu
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

// last are the last n lines.
func (j *journal) last(n int) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines[max(0, len(j.lines)-n):])
}

func (j *journal) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }
func (j *journal) WithAttrs([]slog.Attr) slog.Handler           { return j }
func (j *journal) WithGroup(string) slog.Handler                { return j }
func (j *journal) Handle(_ context.Context, r slog.Record) error {
	line := fmt.Sprint(r.Time.Format("15:04:05.000 "), r.Level, " ", r.Message)
	r.Attrs(func(a slog.Attr) bool { line += fmt.Sprintf(" %s=%v", a.Key, a.Value); return true })
	j.add("%s", line)
	return nil
}
