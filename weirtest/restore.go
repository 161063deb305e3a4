package weirtest

import (
	"context"
	"strings"
	"testing"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/cluster"
	"github.com/weirstream/weir/internal/fit"
)

// CheckRestore fails the test with a report where a job could not start from the savepoint or checkpoint at path, by what a start asks
// itself; `weir check` prints the same. Of a snapshot that is kept in testdata it tells when a change of the program leaves its state
// behind, before that happens to the state of a job that runs:
//
//	func TestRestore(t *testing.T) {
//		env := weir.NewTestEnv()
//		build(env) // what main builds
//		weirtest.CheckRestore(t, env, "testdata/savepoint-5a2c1f-0b1d2e3f")
//	}
//
// Nothing is run, and no input opened. State that no operator takes is refused, unless the environment allows it, as by
// env.Set("execution.state-recovery.ignore-unclaimed-state", true). With -v the test tells what becomes of each state.
func CheckRestore(t testing.TB, env *weir.Env, path string) {
	t.Helper()
	var report *fit.Report
	ctx := cluster.WithTuning(context.Background(), func(j *cluster.Job) {
		j.Instead = func(j cluster.Job) (err error) {
			report, err = cluster.CheckPath(j, path)
			return err
		}
	})
	if err := env.Execute(ctx, t.Name()); err != nil {
		t.Fatalf("weirtest: %s cannot be checked: %v", path, err)
	}
	var text strings.Builder
	_ = report.WriteText(&text) // a Builder takes everything
	if !report.Fits {
		t.Fatalf("weirtest: %s\n%s", path, &text)
	}
	t.Logf("%s\n%s", path, &text)
}
