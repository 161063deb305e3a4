package cluster

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/storage"
)

// A threshold of 0 puts all state into files: once it meant the default.
func TestNoStateLiesInline(t *testing.T) {
	for threshold, files := range map[string]bool{"0": true, "20kb": false} {
		synctest.Test(t, func(t *testing.T) {
			p, fs := &program{ledger: newLedger(), endless: true}, storage.Memory()
			job := p.job(t, fs, "execution.checkpointing.interval=8760h", "execution.checkpointing.data-inline-threshold="+threshold)
			location := ""
			job.Started = func(h *Handle) {
				go func() {
					time.Sleep(time.Second)
					a, err := h.TriggerCheckpoint(t.Context(), false)
					if err != nil {
						t.Error(err)
					}
					location = a.Location
					entries, err := fs.List(location)
					if err != nil {
						t.Error(err)
					}
					n := 0
					for _, e := range entries {
						if !strings.HasPrefix(e.Name, "_") {
							n++
						}
					}
					if files != (n > 0) {
						t.Errorf("threshold %s: %d files of state", threshold, n)
					}
					h.Cancel()
				}()
			}
			_, _ = Run(t.Context(), job) // canceled
			if location == "" {
				t.Error("no checkpoint")
			}
		})
	}
}
