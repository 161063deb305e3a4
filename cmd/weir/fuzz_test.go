package main

import (
	"slices"
	"testing"
)

// FuzzPlan: whatever a job's binary prints is a plan or an error.
func FuzzPlan(f *testing.F) {
	f.Add([]byte(`{"version":1,"job":{"name":"j","id":"x"},"options":[{"key":"k","value":"v","origin":"-D"}],"vertices":[],"edges":[],"hooks":["h"]}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`{"version":1,"error":"it has no sink"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, err := parsePlan("job", text); (p == nil) == (err == nil) {
			t.Errorf("%v, %v", p, err)
		}
	})
}

// FuzzArguments: Flink's spelling of options changes no argument of the job, and is understood once.
func FuzzArguments(f *testing.F) {
	f.Add("run", "-type=native", "-s", "/sp", "./job", "-detached")
	f.Add("run", "-D", "-drain", "--", "./job", "-cm")
	f.Add("savepoint", "-cm=CLAIM", "", "=", "-full", "--")
	f.Fuzz(func(t *testing.T, a, b, c, d, e, g string) {
		args := []string{a, b, c, d, e, g}
		once := spelt(args)
		if len(once) != len(args) || !slices.Equal(spelt(once), once) {
			t.Errorf("%q became %q, then %q", args, once, spelt(once))
		}
		if job := slices.IndexFunc(args[1:], func(s string) bool { return s != "" && s[0] != '-' && s[0] != '/' }); a == "run" && job == 0 && !slices.Equal(once, args) {
			t.Errorf("the job's arguments became %q of %q", once, args)
		}
	})
}
