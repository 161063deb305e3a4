package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// suite measures figures one after the other.
type suite struct {
	rounds int
	only   string
}

// measured is a child's result, and what it cost.
type measured struct {
	result
	cpu   time.Duration // user and system time of the process
	wall  time.Duration
	rssMB float64
}

// child runs one measurement in a process of its own.
func child(name string, w workload) (m measured, err error) {
	self, err := os.Executable()
	if err != nil {
		return m, err
	}
	cmd := exec.Command(self, "-child", name, "-records", strconv.FormatInt(w.records, 10), "-keys", strconv.FormatInt(w.keys, 10),
		"-interval", w.interval.String(), "-warm", strconv.FormatInt(w.warm, 10), "-snapshots", strconv.Itoa(w.snapshots))
	cmd.Stderr = os.Stderr
	begun := time.Now()
	out, err := cmd.Output()
	m.wall = time.Since(begun)
	if err != nil {
		return m, fmt.Errorf("%s: %w", name, err)
	}
	if err := json.Unmarshal(out, &m.result); err != nil {
		return m, fmt.Errorf("%s: %w", name, err)
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	m.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	m.rssMB = float64(usage.Maxrss) / 1024
	return m, nil
}

func median(xs []float64) float64 {
	slices.Sort(xs)
	return xs[len(xs)/2]
}

func (s *suite) want(names ...string) bool {
	return s.only == "" || slices.Contains(names, s.only)
}

func report(name string, v float64, unit string) { fmt.Printf("%s %.4g %s\n", name, v, unit) }

func (s *suite) run(quick bool) error {
	fmt.Printf("# %s, GOMAXPROCS %d\n", runtime.Version(), runtime.GOMAXPROCS(0))
	if quick {
		return s.quick()
	}
	return s.full()
}

func (s *suite) quick() error {
	w := workload{records: 10_000_000, keys: 1_000_000}
	if s.want("keyed_count_vs_loop", "keyed_count_us_per_record", "keyed_count_rss_mb", "checkpoint_cpu_pct", "keyed_count_plain_vs_loop") {
		if err := s.keyedCount(w, ""); err != nil {
			return err
		}
	}
	if s.want("mallocs_per_10k_records") {
		if err := s.mallocs(workload{records: 12_000_000, keys: 100_000, warm: 2_000_000}); err != nil {
			return err
		}
	}
	if s.want("snapshot_sync_p99_us") {
		if err := s.syncPart(workload{records: 1 << 40, keys: 1_000_000, warm: 3_000_000, snapshots: 200, interval: 10 * time.Millisecond}, ""); err != nil {
			return err
		}
	}
	if s.want("first_record_ms") {
		return s.firstRecord()
	}
	return nil
}

func (s *suite) full() error {
	for _, k := range []struct {
		keys   int64
		suffix string
	}{{1_000_000, ""}, {1_000, "_1k"}, {100_000, "_100k"}, {10_000_000, "_10m"}} {
		if s.want("keyed_count_vs_loop" + k.suffix) {
			if err := s.keyedCount(workload{records: 25_000_000, keys: k.keys}, k.suffix); err != nil {
				return err
			}
		}
	}
	if s.want("mallocs_per_10k_records") {
		if err := s.mallocs(workload{records: 20_000_000, keys: 1_000_000, warm: 10_000_000}); err != nil {
			return err
		}
	}
	for _, k := range []struct {
		keys   int64
		suffix string
	}{{1_000_000, ""}, {10_000_000, "_10m"}} {
		if s.want("snapshot_sync_p99_us" + k.suffix) {
			if err := s.syncPart(workload{records: 1 << 40, keys: k.keys, warm: 3 * k.keys, snapshots: 200, interval: 10 * time.Millisecond}, k.suffix); err != nil {
				return err
			}
		}
	}
	if s.want("first_record_ms") {
		return s.firstRecord()
	}
	return nil
}

// keyedCount compares the keyed count, with a checkpoint each second and without, to the loop by hand.
func (s *suite) keyedCount(w workload, suffix string) error {
	with := w
	with.interval = time.Second
	var ratio, plain, us, rss, pct, rate []float64
	for range s.rounds {
		hand, err := child("loop", w)
		if err != nil {
			return err
		}
		job, err := child("count", w)
		if err != nil {
			return err
		}
		checked, err := child("count", with)
		if err != nil {
			return err
		}
		if job.Sum != hand.Sum || checked.Sum != hand.Sum {
			return fmt.Errorf("the sums of counts differ: %d by hand, %d without and %d with checkpoints", hand.Sum, job.Sum, checked.Sum)
		}
		fmt.Printf("# keys %d: loop %.1f ns, weir %.1f ns (%.2f s), with %d checkpoints %.1f ns (%.2f s)\n", w.keys, perRecord(hand, w), perRecord(job, w), job.Seconds,
			len(checked.SyncMicros), perRecord(checked, w), checked.Seconds)
		ratio = append(ratio, float64(checked.cpu)/float64(hand.cpu))
		plain = append(plain, float64(job.cpu)/float64(hand.cpu))
		us = append(us, perRecord(checked, w)/1000)
		rss = append(rss, checked.rssMB)
		pct = append(pct, 100*(float64(checked.cpu)/float64(job.cpu)-1))
		rate = append(rate, 100*(1-job.Seconds/checked.Seconds))
	}
	report("keyed_count_vs_loop"+suffix, median(ratio), "ratio")
	report("keyed_count_plain_vs_loop"+suffix, median(plain), "ratio")
	report("keyed_count_us_per_record"+suffix, median(us), "us")
	report("keyed_count_rss_mb"+suffix, median(rss), "MB")
	report("checkpoint_cpu_pct"+suffix, median(pct), "%")
	report("checkpoint_rate_loss_pct"+suffix, median(rate), "%")
	return nil
}

// perRecord is CPU nanoseconds a record.
func perRecord(m measured, w workload) float64 { return float64(m.cpu) / float64(w.records) }

func (s *suite) mallocs(w workload) error {
	m, err := child("count", w)
	if err != nil {
		return err
	}
	report("mallocs_per_10k_records", float64(m.Mallocs)/float64(w.records-w.warm)*10_000, "mallocs")
	return nil
}

func (s *suite) syncPart(w workload, suffix string) error {
	m, err := child("count", w)
	if err != nil {
		return err
	}
	n := len(m.SyncMicros)
	if n == 0 {
		return fmt.Errorf("no snapshot was taken")
	}
	slices.Sort(m.SyncMicros)
	fmt.Printf("# keys %d: %d snapshots, synchronous part p50 %d us, max %d us\n", w.keys, n, m.SyncMicros[n/2], m.SyncMicros[n-1])
	report("snapshot_sync_p99_us"+suffix, float64(m.SyncMicros[n*99/100]), "us")
	return nil
}

// firstRecord is the time from the exec of a small bounded job to its first record.
func (s *suite) firstRecord() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var ms []float64
	for range max(5, s.rounds) {
		cmd := exec.Command(self, "-child", "first")
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		begun := time.Now()
		if err := cmd.Start(); err != nil {
			return err
		}
		r := bufio.NewReader(out)
		if _, err := r.ReadByte(); err != nil {
			return fmt.Errorf("first: no record came: %w", err)
		}
		ms = append(ms, float64(time.Since(begun).Microseconds())/1000)
		for {
			if _, err := r.ReadByte(); err != nil {
				break
			}
		}
		if err := cmd.Wait(); err != nil {
			return err
		}
	}
	report("first_record_ms", median(ms), "ms")
	return nil
}
