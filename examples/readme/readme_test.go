package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestREADMEShowsThisProgram(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "```go\n"+string(program)+"```") {
		t.Error("README.md does not show main.go")
	}
}

func TestProgram(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("input", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("input/a.txt", []byte("to be or\nnot to be\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	main()
	var got []string
	parts, _ := filepath.Glob("output/part-*")
	for _, p := range parts {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.Split(strings.TrimSpace(string(text)), "\n")...)
	}
	slices.Sort(got)
	if want := []string{"be 1", "be 2", "not 1", "or 1", "to 1", "to 2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
