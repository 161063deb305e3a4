package config

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestNestedAndDottedKeys(t *testing.T) {
	l, err := ParseFile("c.yaml", []byte(`# a comment
parallelism.default: 4
execution:
  checkpointing:
    interval: 10 s   # another
    "mode": AT_LEAST_ONCE
  checkpointing.timeout: "5 min"
pipeline: {name: 'word count', operator-chaining.enabled: false}
restart-strategy:
#  type: none
`))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, s := range l {
		fmt.Fprintf(&got, "%s %s=%s\n", s.Origin, s.Key, s.Value)
	}
	want := `c.yaml:2:1 parallelism.default=4
c.yaml:5:5 execution.checkpointing.interval=10 s
c.yaml:6:5 execution.checkpointing.mode=AT_LEAST_ONCE
c.yaml:7:3 execution.checkpointing.timeout=5 min
c.yaml:8:12 pipeline.name=word count
c.yaml:8:32 pipeline.operator-chaining.enabled=false
`
	if got.String() != want {
		t.Errorf("got\n%s", got.String())
	}
	mustBuild(t, l)
}

func TestEmptyFiles(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "null\n"} {
		if l, err := ParseFile("c.yaml", []byte(text)); err != nil || len(l) != 0 {
			t.Errorf("%q: %v %v", text, l, err)
		}
	}
}

func TestProblemsOfFiles(t *testing.T) {
	for text, want := range map[string]string{
		"parallelism.default: 4\nparallelism: {default: 5}\n": "c.yaml:2:15: parallelism.default is set twice; the first is c.yaml:1:1",
		"pipeline.name: a\npipeline.name: b\n":                "c.yaml:2:1: ",
		"pipeline.name:\n":                                    "c.yaml:1:1: pipeline.name has no value",
		"pipeline.name:\n  - a\n  - b\n":                      "c.yaml:1:1: pipeline.name has a YAML sequence; want one value",
		"pipeline: &x\n  name: a\n":                           "c.yaml:1:1: pipeline has a YAML anchor",
		"just words\n":                                        `c.yaml:1:1: wants lines such as "parallelism.default: 4"`,
		"a: [1\nb: 2\n":                                       "c.yaml:",
		"a:\n\t- b\n":                                         "c.yaml:2:",
	} {
		if _, err := ParseFile("c.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// write makes a file in a new directory and returns both.
func write(t *testing.T, name, text string) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir, path
}

func TestWhichFileIsRead(t *testing.T) {
	here, _ := write(t, FileName, "pipeline.name: here")
	confDir, _ := write(t, FileName, "pipeline.name: conf dir")
	_, named := write(t, "my.yaml", "pipeline.name: named")
	t.Chdir(here)
	load := func(f Flags) string {
		t.Helper()
		c, err := Load(f, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Get(JobName)
	}
	if got := load(Flags{}); got != "here" {
		t.Errorf("got %q", got)
	}
	t.Setenv(DirVariable, confDir)
	if got := load(Flags{}); got != "conf dir" {
		t.Errorf("got %q", got)
	}
	if got := load(Flags{File: named}); got != "named" {
		t.Errorf("got %q", got)
	}
	if got := load(Flags{File: os.DevNull}); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestNoFileIsNeeded(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv(DirVariable, "")
	if _, err := Load(Flags{}, nil); err != nil {
		t.Error(err)
	}
}

func TestANamedFileMustExist(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := Load(Flags{File: "none.yaml"}, nil); err == nil || !strings.Contains(err.Error(), "open none.yaml") {
		t.Errorf("got %v", err)
	}
	t.Setenv(DirVariable, "nowhere")
	if _, err := Load(Flags{}, nil); err == nil || !strings.Contains(err.Error(), "open nowhere/config.yaml: no such file or directory (named by $WEIR_CONF_DIR)") {
		t.Errorf("got %v", err)
	}
}

func TestLoadTellsTheProblemsOfAllSources(t *testing.T) {
	dir, _ := write(t, FileName, "pipeline.name: []\nlisten: 80\n")
	t.Chdir(dir)
	t.Setenv(DirVariable, "")
	_, err := Load(Flags{Settings: Layer{{"x", "1", "-D"}}}, code("parallelism.default", 0))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"config.yaml:1:1: pipeline.name has a YAML sequence", "config.yaml:2:1: listen is not an option",
		"job/main.go:1: parallelism.default = 0", "-D: x is not an option", "(config.yaml was read because it lies in the working directory"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add([]byte("a: b\nc:\n  d.e: [1, {f: g}]\n"))
	f.Add([]byte("? x\n: y\n<<: *z\n!!t u: |\n  v\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if l, err := ParseFile("c.yaml", text); err == nil {
			_, _ = Build(l)
		}
	})
}

// declaredOptions are the keys of the options that options.go declares.
func declaredOptions(t *testing.T) (keys []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "options.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if kv, ok := n.(*ast.KeyValueExpr); ok && fmt.Sprint(kv.Key) == "Key" {
			key, _ := strconv.Unquote(kv.Value.(*ast.BasicLit).Value)
			keys = append(keys, key)
		}
		return true
	})
	if len(keys) == 0 {
		t.Fatal("found no option")
	}
	return keys
}
