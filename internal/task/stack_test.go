package task

import (
	"strings"
	"testing"
)

// TestStack keeps of a trace what is the user's.
func TestStack(t *testing.T) {
	head := "goroutine 7 [running]:\nruntime/debug.Stack()\n\tstack.go:26 +0x5e\ngithub.com/weirstream/weir/internal/task.(*Task).guard.func1()\n\ttask.go:140 +0x1\npanic({0x1, 0x2})\n\tpanic.go:792 +0x132\n"
	user := "main.deeper(...)\n\tmain.go:7\nmain.(*total).Process(0x1)\n\tmain.go:12 +0x1d\n"
	engine := "github.com/weirstream/weir.each[...](0x1)\n\tkeyed.go:260 +0x1\ngithub.com/weirstream/weir/internal/task.(*Task).run(0x1)\n\tloop.go:50 +0x2\n"
	misused := "github.com/weirstream/weir/internal/operator.(*Emitter[...]).Emit(...)\n\temitter.go:80\ngithub.com/weirstream/weir.Out[...].Emit(...)\n\tout.go:17\n"
	tests := []struct{ name, trace, want string }{
		{"the user's code", head + user + engine, user},
		{"the engine, used wrongly", head + misused + user + engine, misused + user},
		{"the engine alone", head + engine, engine},
		{"called back", head + "main.less(0x1)\n\tmain.go:3\n" + misused + user + engine, "main.less(0x1)\n\tmain.go:3\n"},
		{"no panic", "goroutine 7 [running]:\n" + user, user},
		{"the goroutine's maker", head + user + "created by main.main in goroutine 1\n\tmain.go:3 +0x1\n", user},
		{"the engine's maker", head + engine + "created by main.main in goroutine 1\n\tmain.go:3 +0x1\n", engine},
		{"not a trace", "goroutine 7 [running]:", ""},
	}
	for _, test := range tests {
		if got := stack([]byte(test.trace)); got != strings.TrimSpace(test.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
}

func TestPlace(t *testing.T) {
	engine := "github.com/weirstream/weir.(*Value[...]).Set(...)\n\t/src/weir/state.go:28\n"
	if got := place(engine + "main.(*total).Process(0x1)\n\t/src/job/main.go:12 +0x1d"); got != " (main.go:12)" {
		t.Error(got)
	}
	if got := place(engine) + place(""); got != "" {
		t.Error(got)
	}
}
