package state

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"

	"github.com/weirstream/weir/internal/snapshot"
)

// sameSchema reports whether values of a and b have the same kind and bytes. Names of states and of Go types are not
// compared: a type may be renamed, or moved to another package. Names of fields are.
func sameSchema(a, b snapshot.StateSchema) bool {
	return a.Kind == b.Kind && sameAvro(a.MapKey, b.MapKey) && sameAvro(a.Value, b.Value)
}

// CheckSchemas refuses, before anything runs, what a restore would refuse: stored states that keep their name, but not their type. (Which of
// the others are renamed, only the operator knows.)
func CheckSchemas(stored, declared []snapshot.StateSchema) error {
	var all []error
	for _, s := range stored {
		for _, d := range declared {
			keyed := s.Key != ""
			switch {
			case d.Name != s.Name || keyed != (d.Key != ""):
			case keyed && !sameAvro(s.Key, d.Key):
				return &SchemaError{Stored: s.Key, Declared: d.Key} // of all states
			case !sameSchema(s, d):
				all = append(all, &SchemaError{State: s.Name, Stored: describe(s), Declared: describe(d)})
			}
		}
	}
	return errors.Join(all...)
}

func sameAvro(a, b string) bool {
	if a == b {
		return true
	}
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	return reflect.DeepEqual(nameless{}.schema(x), nameless{}.schema(y))
}

// nameless has the names of the types of one schema; each is replaced by its number, in the order of their definitions.
type nameless map[string]string

// schema is s with its types' names replaced.
func (n nameless) schema(s any) any {
	switch s := s.(type) {
	case string:
		if number, ok := n[s]; ok {
			return number
		}
		return s
	case []any: // a union
		all := make([]any, len(s))
		for i := range s {
			all[i] = n.schema(s[i])
		}
		return all
	case map[string]any:
		return n.definition(s)
	}
	return s
}

func (n nameless) definition(s map[string]any) any {
	same := map[string]any{}
	for attribute, v := range s {
		same[attribute] = v
	}
	if name, ok := s["name"].(string); ok {
		n[name] = "#" + strconv.Itoa(len(n))
		same["name"] = n[name]
	}
	for _, inner := range []string{"type", "items"} {
		if v, ok := s[inner]; ok {
			same[inner] = n.schema(v)
		}
	}
	if fields, ok := s["fields"].([]any); ok {
		all := make([]any, len(fields))
		for i, f := range fields {
			all[i] = n.field(f)
		}
		same["fields"] = all
	}
	return same
}

// field keeps its name.
func (n nameless) field(f any) any {
	s, ok := f.(map[string]any)
	if !ok {
		return f
	}
	same := map[string]any{}
	for attribute, v := range s {
		same[attribute] = v
	}
	same["type"] = n.schema(s["type"])
	return same
}
