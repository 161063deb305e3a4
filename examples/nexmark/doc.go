// Nexmark runs queries of the Nexmark benchmark, an auction house, over events that are computed as they are read:
//
//	go run ./examples/nexmark -query q3 -records 10000000 -p 2
//
// and ends with a line to compare with other engines:
//
//	RESULT query=q3 records=10000000 out=62173 sum=1892302421 seconds=4.871 cpu_s=9.402
//
// The sum is over what the query emits, so two engines that print the same sum have computed the same.
//
//	q0  every event, as it is; with -shuffle through an exchange
//	q1  every bid, its price in euros
//	q2  the bids on some auctions
//	q3  who in three states sells in category 10: a join whose state is kept for ever
//
// # What it hides
//
// [Events] computes an event from its number alone, so any subtask can compute any event, at any parallelism, again after a
// failure. tally is a sink that only sums up. One goroutine a subtask, started by the engine; none of its own.
package main
