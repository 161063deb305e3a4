package config

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/config.md")

const docsFile = "../../docs/config.md"

func TestDocsAreTheRegistry(t *testing.T) {
	want := Document()
	if *update {
		if err := os.WriteFile(docsFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/config.md is stale; renew it: go test ./internal/config -run TestDocs -update")
	}
}
