package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ledger ticks off the lines of the output. The reference says of each word how often it comes, so every line that may be in
// the output has one bit: a line without one is wrong, one whose bit is set is there twice, and when as many lines were ticked
// off as there are words, nothing is missing. That is exact, and takes a bit a word of the input.
//
// The sink publishes a file whole and never changes it, so a file can be ticked off as soon as it is there. That is also how
// the progress is known: what counts is what was committed.
type ledger struct {
	reference *reference
	dir       string
	sizes     map[string]int64 // of the files that were ticked off
	ticked    []uint64
	count     int64 // of bits that are set
	wrong     []error
	wrongAll  int
}

// wrongMost is how many mistakes are listed.
const wrongMost = 20

func newLedger(r *reference, dir string) *ledger {
	return &ledger{reference: r, dir: dir, sizes: map[string]int64{}, ticked: make([]uint64, r.total/64+1)}
}

func (l *ledger) problem(format string, args ...any) {
	if l.wrongAll++; l.wrongAll <= wrongMost {
		l.wrong = append(l.wrong, fmt.Errorf(format, args...))
	}
}

// enterNew ticks off the files that have appeared.
func (l *ledger) enterNew() error {
	entries, err := os.ReadDir(l.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if _, known := l.sizes[name]; known || strings.HasPrefix(name, ".") { // such are not published
			continue
		}
		text, err := os.ReadFile(filepath.Join(l.dir, name))
		if err != nil {
			return err
		}
		l.sizes[name] = int64(len(text))
		l.enter(name, text)
	}
	return nil
}

// enter ticks off the lines of a file.
func (l *ledger) enter(name string, text []byte) {
	for len(text) > 0 {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		text = rest
		if !whole {
			l.problem("%s ends in the middle of a line: %q", name, line)
			return
		}
		l.tick(name, line)
	}
}

func (l *ledger) tick(name string, line []byte) {
	text, number, _ := bytes.Cut(line, []byte(" "))
	n, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil {
		l.problem("%s has a line that is not a word and a number: %q", name, line)
		return
	}
	w := l.reference.words[string(text)]
	if w == nil {
		l.problem("%s counts %q, which is not in the input", name, text)
		return
	}
	if n < 1 || n > w.n {
		l.problem("%s has %q for the %d-th time; it comes %d times in the input", name, text, n, w.n)
		return
	}
	at := w.first + n - 1
	if l.ticked[at/64]&(1<<(at%64)) != 0 {
		l.problem("%s has %q for the %d-th time, which was there already", name, text, n)
		return
	}
	l.ticked[at/64] |= 1 << (at % 64)
	l.count++
}

// balance tells all that is wrong with the output of the job, which has ended.
func (l *ledger) balance() error {
	if err := l.enterNew(); err != nil {
		return err
	}
	l.checkFiles()
	if l.count < l.reference.total {
		l.findMissing()
	}
	if more := l.wrongAll - len(l.wrong); more > 0 {
		l.wrong = append(l.wrong, fmt.Errorf("and %d more", more))
	}
	return errors.Join(l.wrong...)
}

// checkFiles looks for files that were changed after they had been published.
func (l *ledger) checkFiles() {
	for name, size := range l.sizes {
		if info, err := os.Stat(filepath.Join(l.dir, name)); err != nil {
			l.problem("%s was published, and is gone: %v", name, err)
		} else if info.Size() != size {
			l.problem("%s was published with %d bytes, and now has %d", name, size, info.Size())
		}
	}
}

func (l *ledger) findMissing() {
	for text, w := range l.reference.words {
		for at := w.first; at < w.first+w.n; at++ {
			if l.ticked[at/64]&(1<<(at%64)) == 0 {
				l.problem("%q for the %d-th time is missing; it comes %d times in the input", text, at-w.first+1, w.n)
			}
		}
	}
}
