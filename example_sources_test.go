package weir_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/weirstream/weir"
)

// A hundred thousand temperatures a second, one for each millisecond of event time.
func ExampleGenerate() {
	type reading struct {
		At      time.Time
		Celsius float64
	}
	readings := weir.Generate(5, func(i int64) reading {
		return reading{At: time.UnixMilli(i).UTC(), Celsius: 20 + float64(i%3)}
	}).Rate(100_000)

	env := weir.NewTestEnv()
	env.From(readings).UID("readings").
		Map(func(r reading) string { return fmt.Sprintf("%s %.0f", r.At.Format("05.000"), r.Celsius) }).
		To(weir.PrintTo[string](os.Stdout))
	if err := env.Execute(context.Background(), "readings"); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 00.000 20
	// 00.001 21
	// 00.002 22
	// 00.003 20
	// 00.004 21
}

func ExampleCollect() {
	env := weir.NewTestEnv()
	var got []int
	env.From(weir.FromSlice([]int{1, 2, 3})).UID("numbers").
		Map(func(n int) int { return n * n }).
		To(weir.Collect(&got)).UID("got")
	if err := env.Execute(context.Background(), "squares"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(got)
	// Output: [1 4 9]
}
