package main

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirstream/weir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// golden are the results of the same queries over the same first million events on Apache Flink.
var golden = []struct {
	query        string
	records, sum int64
}{
	{"q0", 1_000_000, 6640526242227},
	{"q1", 920_000, 6029597297255},
	{"q2", 6790, 52531273090},
	{"q3", 6205, 187576031},
}

// TestGolden compares with Flink.
func TestGolden(t *testing.T) {
	if raceEnabled {
		t.Skip("a million events take long under the race detector: TestQueries has fewer")
	}
	for _, want := range golden {
		t.Run(want.query, func(t *testing.T) {
			records, sum := result(t, options{query: want.query, records: 1_000_000, rate: 100_000}, 2)
			if records != want.records || sum != want.sum {
				t.Errorf("%d records with the sum %d; Flink: %d with %d", records, sum, want.records, want.sum)
			}
		})
	}
}

// TestQueries compares every way to run a query with a loop over the events.
func TestQueries(t *testing.T) {
	const events = 20_000
	for query := range queries {
		wantRecords, wantSum := plain(query, events)
		for _, parallelism := range []int{1, 3} {
			for _, shuffle := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/%v", query, parallelism, shuffle), func(t *testing.T) {
					o := options{query: query, records: events, rate: 100_000, shuffle: shuffle}
					records, sum := result(t, o, parallelism)
					if records != wantRecords || sum != wantSum {
						t.Errorf("%d records with the sum %d; want %d with %d", records, sum, wantRecords, wantSum)
					}
				})
			}
		}
	}
}

func result(t *testing.T, o options, parallelism int) (records, sum int64) {
	t.Helper()
	var out total
	if err := execute(t.Context(), weir.NewTestEnv().Parallelism(parallelism), o, &out); err != nil {
		t.Fatal(err)
	}
	return out.records.Load(), out.sum.Load()
}

// plain is what a query emits, without an engine.
func plain(query string, events int64) (records, sum int64) {
	add := func(v int64) { records, sum = records+1, sum+v }
	event := Events(100_000)
	sellers := map[int64]bool{} // of q3
	for n := range events {
		if e := event(n); e.Person != nil {
			switch e.Person.State {
			case "OR", "ID", "CA":
				sellers[e.Person.ID] = true
			}
		}
	}
	for n := range events {
		e := event(n)
		switch {
		case e.IsBid() && (query == "q0" || query == "q1"):
			if query == "q1" {
				e.Bid.Price = int64(float64(e.Bid.Price) * 0.908)
			}
			add(e.Bid.Price)
		case query == "q0":
			add(1)
		case query == "q2" && e.IsBid() && e.Bid.Auction%123 == 0:
			add(e.Bid.Auction + e.Bid.Price)
		case query == "q3" && e.Auction != nil && e.Auction.Category == 10 && sellers[e.Auction.Seller]:
			add(e.Auction.ID)
		}
	}
	return records, sum
}

// TestGoldenEvents does without an engine: events that differ show here first.
func TestGoldenEvents(t *testing.T) {
	for _, want := range golden {
		if records, sum := plain(want.query, 1_000_000); records != want.records || sum != want.sum {
			t.Errorf("%s: %d records with the sum %d; Flink: %d with %d", want.query, records, sum, want.records, want.sum)
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, o := range []options{{query: "q99", rate: 1}, {query: "q0"}, {query: "q0", rate: 1, records: -1}} {
		if err := execute(t.Context(), weir.NewTestEnv(), o, &total{}); err == nil {
			t.Errorf("%+v runs", o)
		}
	}
}

func BenchmarkEvents(b *testing.B) {
	event := Events(100_000)
	for n := range int64(b.N) {
		sinkhole = event(n)
	}
}

var sinkhole Event
