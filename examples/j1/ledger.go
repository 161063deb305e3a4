package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ledger compares an output with what must be in it. The order in which the integers of one key come is free, as they come
// from two partitions; all else is not: if a key's lines are put in the order of their counts, these are 1, 2, 3 and so on,
// each sum is the one before plus the integer, and every integer of the key is there once.
type ledger struct {
	records int64
	byKey   [][]Line
	wrong   []error
}

// wrongMost is how many mistakes are listed.
const wrongMost = 20

func newLedger(records, keys int64) *ledger {
	return &ledger{records: records, byKey: make([][]Line, keys)}
}

func (l *ledger) problem(format string, args ...any) {
	switch len(l.wrong) {
	case wrongMost:
		l.wrong = append(l.wrong, errors.New("and more"))
	default:
		l.wrong = append(l.wrong, fmt.Errorf(format, args...))
	case wrongMost + 1:
	}
}

// readDir enters the lines of all files that the sink has published in a directory.
func (l *ledger) readDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") { // not published
			continue
		}
		if err := l.readFile(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (l *ledger) readFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		l.enter(fmt.Sprint(filepath.Base(path), ":", n), lines.Text())
	}
	return lines.Err()
}

func (l *ledger) enter(where, text string) {
	var line Line
	if _, err := fmt.Sscanf(text, "%d %d %d %d", &line.Key, &line.Value, &line.Count, &line.Sum); err != nil {
		l.problem("%s is not a line of four numbers: %q", where, text)
		return
	}
	keys := int64(len(l.byKey))
	if line.Value < 1 || line.Value > l.records || line.Key != line.Value%keys {
		l.problem("%s: there is no integer %d of key %d", where, line.Value, line.Key)
		return
	}
	l.byKey[line.Key] = append(l.byKey[line.Key], line)
}

// balance tells what is wrong.
func (l *ledger) balance() error {
	seen := make([]int, l.records+1)
	for key, lines := range l.byKey {
		slices.SortFunc(lines, func(a, b Line) int { return int(a.Count - b.Count) })
		var sum int64
		for i, line := range lines {
			seen[line.Value]++
			sum += line.Value
			if line.Count != int64(i)+1 || line.Sum != sum {
				l.problem("key %d: integer %d has count %d and sum %d; want %d and %d", key, line.Value, line.Count, line.Sum, i+1, sum)
			}
		}
	}
	for v := int64(1); v <= l.records; v++ {
		if seen[v] != 1 {
			l.problem("integer %d is there %d times", v, seen[v])
		}
	}
	return errors.Join(l.wrong...)
}
