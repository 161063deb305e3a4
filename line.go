package weir

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// userLine is the file and line of the nearest caller outside of this package: where the user's program called it.
func userLine() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "github.com/weirstream/weir.") {
			return fmt.Sprintf("%s/%s:%d", filepath.Base(filepath.Dir(f.File)), filepath.Base(f.File), f.Line)
		}
		if !more {
			return "?"
		}
	}
}
