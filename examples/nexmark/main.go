package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/weirstream/weir"
)

// options are what the command line says, but for Weir's own arguments.
type options struct {
	query    string
	records  int64
	rate     int64
	interval time.Duration
	shuffle  bool
	bare     bool
}

func main() {
	env := weir.NewEnv()
	var o options
	flag.StringVar(&o.query, "query", "q0", "one of `"+strings.Join(slices.Sorted(maps.Keys(queries)), ", ")+"`")
	flag.Int64Var(&o.records, "records", 1_000_000, "how many events there are")
	flag.Int64Var(&o.rate, "rate", 100_000, "how many events happen in a second of event time")
	flag.DurationVar(&o.interval, "interval", 0, "how often a checkpoint is taken; 0: none is")
	flag.BoolVar(&o.shuffle, "shuffle", false, "send every event through an exchange")
	flag.BoolVar(&o.bare, "bare", false, "only compute the events, in a loop without the engine: what a chained query cannot do without")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, env, o); err != nil {
		fmt.Fprintln(os.Stderr, "nexmark:", err)
		os.Exit(1)
	}
}

// run runs a query and prints its result.
func run(ctx context.Context, env *weir.Env, o options) error {
	var out total
	started, cpu := time.Now(), cpuSeconds()
	if o.bare {
		o.query = "none"
		loop(o, &out)
	} else if err := execute(ctx, env, o, &out); err != nil {
		return err
	}
	fmt.Printf("RESULT query=%s records=%d out=%d sum=%d seconds=%.3f cpu_s=%.3f\n",
		o.query, o.records, out.records.Load(), out.sum.Load(), time.Since(started).Seconds(), cpuSeconds()-cpu)
	return nil
}

// execute runs a query. A failure ends the job: a restart would measure something else.
func execute(ctx context.Context, env *weir.Env, o options, out *total) error {
	q, known := queries[o.query]
	if !known {
		return fmt.Errorf("there is no query %q: take one of %s", o.query, strings.Join(slices.Sorted(maps.Keys(queries)), ", "))
	}
	if o.rate < 1 || o.records < 0 {
		return fmt.Errorf("-rate %d and -records %d: there must be at least one event a second, and no fewer than none at all", o.rate, o.records)
	}
	if o.interval > 0 {
		env.EnableCheckpointing(o.interval, weir.ExactlyOnce)
	}
	env.Set("restart-strategy.type", "none")
	events := env.From(weir.Generate(o.records, Events(o.rate))).UID("events").Name("events")
	if o.shuffle {
		events = events.Rebalance()
	}
	q(events, out)
	return env.Execute(ctx, "nexmark-"+o.query)
}

// loop computes the events, and sums up what q0 would.
func loop(o options, out *total) {
	event, sum := Events(o.rate), int64(0)
	for n := range o.records {
		e := event(n)
		sum += value(e)
	}
	out.records.Add(o.records)
	out.sum.Add(sum)
}
