package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"
)

// display is where people see what goes on.
type display struct {
	out   *os.File
	live  bool // out is a terminal, where one line changes all the time
	drawn bool // that line is there
	last  time.Time
}

func newDisplay(out *os.File) *display {
	return &display{out: out, live: term.IsTerminal(int(out.Fd()))}
}

// note shows a line that stays.
func (d *display) note(format string, args ...any) {
	d.wipe()
	fmt.Fprintf(d.out, format+"\n", args...)
}

// status shows how far things are: at once on a terminal, else once a second.
func (d *display) status(line string) {
	every := time.Second
	if d.live {
		every = 100 * time.Millisecond
	}
	if time.Since(d.last) < every {
		return
	}
	d.last = time.Now()
	if !d.live {
		fmt.Fprintln(d.out, line)
		return
	}
	d.wipe()
	if width, _, err := term.GetSize(int(d.out.Fd())); err == nil && 0 < width && width <= len(line) {
		line = line[:width-1]
	}
	fmt.Fprint(d.out, line)
	d.drawn = true
}

// wipe removes the live line.
func (d *display) wipe() {
	if d.drawn {
		fmt.Fprint(d.out, "\r\x1b[K")
		d.drawn = false
	}
}

// grouped is n with a comma before every third digit from the end.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}
