//go:build unix

package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuSeconds is the time that all processors have spent on this process.
func cpuSeconds() float64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
