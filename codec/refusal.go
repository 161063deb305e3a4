package codec

import (
	"fmt"
	"reflect"
)

// RefusedError says why a type cannot be encoded, or cannot be a key.
type RefusedError struct {
	Root    reflect.Type // the type that was asked for
	Path    string       // where in it the trouble lies, as "Items[].Price"; empty: the root itself
	Type    reflect.Type // the type found there
	Reason  string       // what is wrong with it
	Instead string       // what to do about it
}

func (e *RefusedError) Error() string {
	where := e.Root.String()
	if e.Path != "" {
		where += ", field " + e.Path
	}
	if e.Type != e.Root {
		where += " (" + e.Type.String() + ")"
	}
	return fmt.Sprintf("codec: %s: %s; %s", where, e.Reason, e.Instead)
}

// joinPath puts a field, "[]" or "[key]" behind a path.
func joinPath(path, next string) string {
	if path == "" || next == "" || next[0] == '[' {
		return path + next
	}
	return path + "." + next
}
