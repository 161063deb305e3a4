package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	child := flag.String("child", "", "what to run and be measured by: used by the parent")
	quick := flag.Bool("quick", false, "the figures of bench-quick, in under a minute")
	only := flag.String("only", "", "measure this figure only")
	rounds := flag.Int("rounds", 5, "rounds of each comparison; the median counts")
	var w workload
	flag.Int64Var(&w.records, "records", 25_000_000, "records (child)")
	flag.Int64Var(&w.keys, "keys", 1_000_000, "distinct keys (child)")
	flag.DurationVar(&w.interval, "interval", 0, "checkpoint interval; 0: none (child)")
	flag.Int64Var(&w.warm, "warm", 0, "count allocations from this record on (child)")
	flag.IntVar(&w.parallelism, "parallelism", 1, "parallelism of count (child)")
	flag.IntVar(&w.snapshots, "snapshots", 0, "end after so many snapshots, from record warm on (child)")
	flag.StringVar(&w.profile, "profile", "", "write a CPU profile to this file (child)")
	flag.BoolVar(&w.unaligned, "unaligned", false, "unaligned checkpoints (child pressure)")
	flag.Parse()
	if *child != "" {
		if err := runChild(*child, w); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	s := suite{rounds: *rounds, only: *only}
	if *quick {
		s.rounds = min(s.rounds, 3)
	}
	if err := s.run(*quick); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
