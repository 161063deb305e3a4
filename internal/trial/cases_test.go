package trial

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCasesNameTests: every test that docs/cases.md names is there.
func TestCasesNameTests(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "cases.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z0-9/.]+): ((?:Test|Fuzz)[A-Za-z0-9]+)(?:/([a-z0-9_]+))?`").FindAllStringSubmatch(string(page), -1)
	if len(named) < 100 {
		t.Errorf("only %d tests are named", len(named))
	}
	for _, n := range named {
		dir := filepath.Join(root, n[1])
		if !strings.Contains(tests(t, dir), "\nfunc "+n[2]+"(") {
			t.Errorf("there is no %s in package %s", n[2], n[1])
		}
		if n[2] != "TestScripts" || n[3] == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "testdata", n[3]+".txt")); err != nil {
			t.Error(err)
		}
	}
}

// tests is the text of a package's tests.
func tests(t *testing.T, dir string) string {
	var all strings.Builder
	names, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}
