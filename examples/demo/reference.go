package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// reference is what a plain loop over the same files counts. It has its own way to find the files and their words, so that a
// mistake of the job's is not made here too.
type reference struct {
	words map[string]*word
	total int64 // of all words
	lines int64
	files int
	bytes int64
}

// word is a word of the input.
type word struct {
	n     int64 // how often it comes
	first int64 // n numbers from here on are its share of the total
}

// count counts the words in the files below a directory.
func count(root string) (*reference, error) {
	r := &reference{words: map[string]*word{}}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path != root && strings.ContainsAny(entry.Name()[:1], "._") { // these, the source leaves out
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return err
		}
		return r.addFile(path)
	})
	if err == nil && r.total == 0 {
		err = fmt.Errorf("below %s there is no .go file with a word in it", root)
	}
	r.share()
	return r, err
}

func (r *reference) addFile(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	r.files++
	r.bytes += int64(len(text))
	r.lines += int64(bytes.Count(text, []byte("\n")))
	for len(text) > 0 {
		n := 0
		for n < len(text) && isWordByte(text[n]) {
			n++
		}
		if n == 0 {
			text = text[1:]
			continue
		}
		r.add(text[:n])
		text = text[n:]
	}
	return nil
}

func isWordByte(b byte) bool {
	switch {
	case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', b == '_':
		return true
	}
	return false
}

func (r *reference) add(text []byte) {
	w := r.words[string(text)]
	if w == nil {
		w = &word{}
		r.words[string(text)] = w
	}
	w.n++
	r.total++
}

// share gives each word its share of the numbers below the total.
func (r *reference) share() {
	var next int64
	for _, w := range r.words {
		w.first = next
		next += w.n
	}
}
