package storage

import (
	"errors"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// Every spelling of a path names the same savepoint (B137).
func TestSpellingsOfAPath(t *testing.T) {
	root, err := Disk().Resolve(t.TempDir())
	must(t, err)
	d := openJob(t, Disk(), path.Join(root, "ckpt"))
	made := mustTake(t, d, 3, snapshot.Savepoint, "file://"+root+"/made/")
	sp := path.Join(root, "sp")
	must(t, os.Rename(made, sp)) // savepoints can be moved
	must(t, os.Mkdir(path.Join(root, "x"), 0o777))
	must(t, os.Symlink(sp, path.Join(root, "link")))
	t.Chdir(path.Join(root, "x"))
	for _, spelt := range []string{
		sp, sp + "/", "/" + sp + "///", sp + "/_metadata", sp + "/./_metadata/", "file://" + sp, "file:" + sp, "FILE://localhost" + sp,
		"../sp", "./../sp/", "../x/../sp/_metadata", "file:../sp", path.Join(root, "link"), path.Join(root, "link", "_metadata"), "../link//",
	} {
		m, location, err := ReadMetadata(Disk(), spelt)
		if err != nil || location != sp || m.ID != 3 {
			t.Errorf("%s: %q, %v", spelt, location, err)
			continue
		}
		must(t, verify(d.Open, m, location))
	}
}

func TestPathsThatNameNoCheckpoint(t *testing.T) {
	m := memoryWith(t, "/d/empty")
	d := openJob(t, m, "/d")
	mustTake(t, d, 3, snapshot.Checkpoint, "")
	must(t, writeSynced(m, "/d/file", nil))
	must(t, m.Mkdir("/d/bad"))
	must(t, writeSynced(m, "/d/bad/_metadata", []byte("hello, this is not metadata")))
	for spelt, want := range map[string]string{
		"":                      "the path is empty",
		"file:":                 "names nothing",
		"file://":               "names nothing",
		"file://d/sp":           "write file:///d/sp",
		"s3://b/sp/":            "scheme s3: is not supported",
		"s3p://b/sp":            "scheme s3p: is not supported",
		"hdfs:/b/sp":            "scheme hdfs: is not supported",
		"a:b":                   "is written ./a:b",
		"/d/none":               "no checkpoint at /d/none: there is no such directory",
		"/d/none/_metadata":     "no checkpoint at /d/none: there is no such directory",
		"/d/empty":              "no checkpoint at /d/empty: there is no _metadata in it:",
		"/d/" + string(testJob): "there is no _metadata in it (but in its directories chk-3 there is)",
		"/d/file":               "/d/file is a file",
		"/d/bad":                "/d/bad/_metadata cannot be restored",
	} {
		_, _, err := ReadMetadata(m, spelt)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", spelt, err, want)
		}
		if strings.Contains(want, "no checkpoint") {
			isErr(t, spelt, err, iofs.ErrNotExist)
		}
	}
}

func TestSymlinksThatLeadNowhere(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	must(t, os.Symlink("none", filepath.Join(dir, "dangling")))
	for _, name := range []string{"loop", "dangling"} {
		if _, _, err := ReadMetadata(Disk(), filepath.Join(dir, name)); err == nil {
			t.Errorf("%s names a checkpoint", name)
		}
	}
}

// A savepoint's directory is named as Flink names it, and made with all above it.
func TestSavepointDirectory(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys FS, dir string) {
		d := openJob(t, fsys, dir)
		location, err := d.CreateLocation(1, snapshot.Savepoint, "file:"+dir+"/a/b//")
		must(t, err)
		name, found := strings.CutPrefix(location, path.Join(dir, "a", "b", "savepoint-012345-"))
		if !found || len(name) != 12 || strings.Trim(name, "0123456789abcdef") != "" {
			t.Errorf("it is %s", location)
		}
		for id, target := range []string{"", "s3://b"} {
			if _, err := d.CreateLocation(base.CheckpointID(2+id), snapshot.Savepoint, target); err == nil || strings.Contains(err.Error(), "used before") {
				t.Errorf("a savepoint to %q: %v", target, err)
			}
		}
	})
}

// A target under a file, or where nobody may write, is refused and the id is used up.
func TestSavepointThatCannotBeMade(t *testing.T) {
	f := Faulty(memoryWith(t, "/d"), &Rule{Op: OpMkdir, Path: "savepoint-*", Err: iofs.ErrPermission})
	d := openJob(t, f, "/d")
	_, err := d.CreateLocation(1, snapshot.Savepoint, "/sp")
	isErr(t, "making it", err, iofs.ErrPermission)
	f.SetRules(&Rule{Op: OpMkdir, Path: "savepoint-*", Count: savepointTries - 1, Err: iofs.ErrExist})
	_, err = d.CreateLocation(2, snapshot.Savepoint, "/sp")
	must(t, err)
	f.SetRules(&Rule{Op: OpMkdir, Path: "savepoint-*", Err: iofs.ErrExist})
	_, err = d.CreateLocation(3, snapshot.Savepoint, "/sp")
	isErr(t, "making it ten times", err, iofs.ErrExist)
	if d.LargestID() != 3 {
		t.Errorf("the largest id is %d", d.LargestID())
	}
}

// A file name in metadata that leads out of a savepoint, which may come from anyone, is refused.
func TestMetadataCannotNameFilesOutside(t *testing.T) {
	m := memoryWith(t, "/sp")
	must(t, writeSynced(m, "/secret", []byte("x")))
	meta, err := writeState(NewWriter(m, "/sp", smallFiles), 1, snapshot.Savepoint, 1)
	must(t, err)
	meta.Operators[0].Subtasks[0].Keyed[0].Handle = snapshot.Handle{File: "../secret", Size: 1}
	must(t, writeSynced(m, "/sp/_metadata", meta.Encode()))
	if _, _, err := ReadMetadata(m, "/sp"); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "leads out of the checkpoint") {
		t.Errorf("%v", err)
	}
}
