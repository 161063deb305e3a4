package main

import (
	"fmt"
	"path/filepath"
)

// checkpoints watches which checkpoints complete. A checkpoint is a directory <job>/chk-<id>, and has completed when there is a
// file _metadata in it. It is removed when a newer one has completed, and its id is never used again, by no run of the job.
type checkpoints struct {
	dir    string
	newest int
	count  int // of those that were seen
}

// look takes notice of the checkpoints that have completed.
func (c *checkpoints) look() error {
	found, err := filepath.Glob(filepath.Join(c.dir, "*", "chk-*", "_metadata"))
	newest := c.newest
	for _, path := range found {
		var id int
		if _, err := fmt.Sscanf(filepath.Base(filepath.Dir(path)), "chk-%d", &id); err == nil && id > c.newest {
			c.count++
			newest = max(newest, id)
		}
	}
	c.newest = newest
	return err
}
