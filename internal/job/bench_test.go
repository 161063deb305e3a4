package job

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
)

// BenchmarkRestart is one failure of a job: all tasks are told to end, are gone, are deployed and run again.
func BenchmarkRestart(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m, err := NewMachine(Config{Run: 1, Restart: Strategy{Kind: FixedDelay, Attempts: 1 << 40}}, makeGraph(fmt.Sprintf("a:%d -> b:%d", n/2, n/2)), checkpoint.Recovered{})
			if err != nil {
				b.Fatal(err)
			}
			token, attempt := Token(0), 0
			all := func(s TaskState) {
				for t := range n {
					m.Step(0, TaskReported{Exec: base.Exec{Task: base.Task(t), Attempt: base.FirstAttempt(1, attempt)}, State: s, Err: errors.New("boom")})
				}
			}
			m.Step(0, Started{})
			for b.Loop() {
				token++
				m.Step(0, OperatorsReset{Token: token})
				all(TaskRunning)
				all(TaskFailed)
				attempt++
			}
		})
	}
}
