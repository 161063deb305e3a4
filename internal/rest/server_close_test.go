package rest

import (
	"net/http"
	"testing"

	"github.com/weirstream/weir/internal/config"
)

// TestNobodyIsAnsweredBeforeTheJobRuns, and a job that is refused gives the address back at once.
func TestNobodyIsAnsweredBeforeTheJobRuns(t *testing.T) {
	var l config.Layer
	l.Set(config.RestPort.Key, 0, "test")
	c, err := config.Build(l)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Listen(Options{ID: jobID, Config: c, Version: "v0"})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := http.Get(s.URL()); err == nil {
		t.Error("it answers after it was closed")
	}
}
