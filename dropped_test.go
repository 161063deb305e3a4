package weir

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/cluster"
)

type twoStates struct {
	A Value[int64] `state:"a"`
	B Value[int64] `state:"b"`
}

func (f *twoStates) Process(_ *KeyedContext[int64], v int64, _ Out[int64]) error {
	f.A.Set(v)
	f.B.Set(v)
	return nil
}

type oneState struct {
	A Value[int64] `state:"a"`
}

func (f *oneState) Process(_ *KeyedContext[int64], v int64, _ Out[int64]) error {
	f.A.Set(v)
	return nil
}

func TestStateDroppedWithinAnOperatorIsTold(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	run := func(f KeyedFunction[int64, int64, int64], from string) error {
		env := NewTestEnv()
		env.EnableCheckpointing(10*time.Millisecond, ExactlyOnce).Storage = dir
		if from != "" {
			env.Set("execution.state-recovery.path", from).Set("execution.state-recovery.ignore-unclaimed-state", true)
		}
		env.From(FromSlice(numbers(300)).Rate(2000)).UID("numbers").
			KeyBy(func(v int64) int64 { return v }).
			Process(f).UID("f").
			To(Discard[int64]())
		ctx := cluster.WithTuning(t.Context(), func(j *cluster.Job) { j.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		return env.Execute(ctx, "dropped")
	}
	stop := keepCheckpoints(t, dir)
	err := run(&twoStates{}, "")
	kept := stop()
	if err != nil || len(kept) < 2 {
		t.Fatalf("%v, %d checkpoints", err, len(kept))
	}
	if err := run(&oneState{}, kept[len(kept)/2]); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "State was dropped") || !strings.Contains(log.String(), "states=[b]") {
		t.Errorf("nobody was told: %s", &log)
	}
}
