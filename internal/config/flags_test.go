package config

import (
	"slices"
	"strings"
	"testing"
)

func TestTakeLeavesTheUsersArguments(t *testing.T) {
	for _, test := range []struct{ args, settings, file, rest string }{
		{"", "", "", ""},
		{"-v in out", "", "", "-v in out"},
		{"-s /sp -v -n in -p 4 out", "execution.state-recovery.path=/sp execution.state-recovery.ignore-unclaimed-state=true parallelism.default=4", "", "-v in out"},
		{"--fromSavepoint=latest --parallelism 2 --allowNonRestoredState", "execution.state-recovery.path=latest parallelism.default=2 execution.state-recovery.ignore-unclaimed-state=true", "", ""},
		{"-Dpipeline.name=a=b -D pipeline.name= x", "pipeline.name=a=b pipeline.name=", "", "x"},
		{"--config c.yaml -config u.yaml", "", "c.yaml", "-config u.yaml"},
		{"-n=false", "execution.state-recovery.ignore-unclaimed-state=false", "", ""},
		{"-p 1 -- -p 2 -- -s", "parallelism.default=1", "", "-p 2 -- -s"},
		{"-p 1 in -- -p 2", "parallelism.default=1", "", "in -- -p 2"},
		{"-- -- -x", "", "", "-- -x"},
		{"-points -s=x -no", "execution.state-recovery.path=x", "", "-points -no"},
		{"- -pn", "", "", "- -pn"},
	} {
		f, rest, err := Take(strings.Fields(test.args))
		if err != nil {
			t.Errorf("%s: %v", test.args, err)
			continue
		}
		var settings []string
		for _, s := range f.Settings {
			settings = append(settings, s.Key+"="+s.Value.(string))
		}
		if got := strings.Join(settings, " "); got != test.settings || f.File != test.file || !slices.Equal(rest, strings.Fields(test.rest)) {
			t.Errorf("%s: got %q, %q and %q", test.args, got, f.File, rest)
		}
	}
}

func TestTakeRefusals(t *testing.T) {
	for args, want := range map[string]string{
		"-s":              "weir: -s wants a value: -s PATH, -s latest or -s latest-or-start",
		"-s -n":           "weir: -s wants a value",
		"-s=":             "weir: -s : must be non-empty; want -s PATH",
		"-p":              "weir: -p wants a value: -p N",
		"-p four":         "weir: -p four: is not a whole number; want -p N",
		"--parallelism=0": "weir: --parallelism 0: must be between 1 and 32768; want -p N",
		"-D":              "weir: -D wants a value: -D KEY=VALUE",
		"-D -- x=1":       "weir: -D wants a value",
		"-Dx":             "weir: -D x: is not KEY=VALUE",
		"-D =x":           "weir: -D =x: is not KEY=VALUE",
		"--config":        "weir: --config wants a value",
		"--config=":       "weir: --config : is empty",
		"-n=perhaps":      "weir: -n perhaps: is not true or false",
	} {
		if _, _, err := Take(strings.Fields(args)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", args, err, want)
		}
	}
}

// All that is wrong is told, and the program's own arguments are there.
func TestTakeRefusesAndGoesOn(t *testing.T) {
	_, rest, err := Take(strings.Fields("-dir x -p four -s -records 7 -D y"))
	if !slices.Equal(rest, []string{"-dir", "x", "-records", "7"}) {
		t.Errorf("the program's arguments: %v", rest)
	}
	for _, want := range []string{"-p four", "-s wants a value", "-D y"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in: %v", want, err)
		}
	}
}
