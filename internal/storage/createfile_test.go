package storage

import (
	"path"
	"strings"
	"testing"
)

// What is made by CreateFile is a file, be it empty, whose extension says what it is, however long its name.
func TestCreateFile(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys FS, dir string) {
		w := NewWriter(fsys, dir, WriterOptions{})
		files := map[string]bool{}
		for _, name := range []string{"3-0-counts-total.avro", strings.Repeat("x", 300) + ".avro", strings.Repeat("x", 301) + ".avro", "no extension"} {
			o, err := w.CreateFile(name)
			must(t, err)
			h, err := o.Commit()
			must(t, err)
			if files[h.File] || h.File == "" || path.Ext(h.File) != path.Ext(name) {
				t.Errorf("%.30q is in %q", name, h.File)
			}
			files[h.File] = true
		}
	})
	o, err := NewWriter(nil, "memory:", WriterOptions{}).CreateFile("x.avro")
	must(t, err)
	if h, err := o.Commit(); err != nil || h.File != "" {
		t.Errorf("in memory: %+v, %v", h, err)
	}
}
