package weir

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/state"
)

// prototype is a user's function as it was handed to the graph: never run itself, but copied for each subtask.
type prototype struct {
	original any
	label    string       // its type, for messages
	fields   []fieldOf    // state and side outputs
	copied   reflect.Type // the struct that is copied; nil: the value is used as it is
	rename   func(string) string
	problems []string
}

// fieldOf is a declared field of a function's struct.
type fieldOf struct {
	path  string // in Go, for messages
	index []int
	spec  state.Spec // of a state
	side  string     // of a side output
	cast  bool       // state that only a function with a broadcast input may declare
}

// renamer is implemented by built-in functions whose states the user names.
type renamer interface{ stateName(declared string) string }

// inspect looks a function over: its fields, and its optional methods against the signatures that they must have.
func inspect(f any, methods []optional) *prototype {
	p := &prototype{original: f, label: fmt.Sprintf("%T", f)}
	if f == nil {
		p.problem("the function is nil")
		return p
	}
	if r, ok := f.(renamer); ok {
		p.rename = r.stateName
	}
	t := reflect.TypeOf(f)
	switch {
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct:
		if reflect.ValueOf(f).IsNil() {
			p.problem("the function is a nil %s", t)
			return p
		}
		p.copied = t.Elem()
		p.walk(reflect.ValueOf(f).Elem(), nil, "", "")
	case t.Kind() == reflect.Struct:
		before := len(p.fields)
		p.walk(reflect.ValueOf(f), nil, "", "")
		if len(p.fields) > before {
			p.problem("%s declares state or side outputs: pass a pointer to it (&%s{...})", t, t.Name())
		}
	}
	for _, m := range methods {
		m.check(p, t)
	}
	return p
}

// withoutBroadcast refuses state that nothing keeps the same on all subtasks.
func (p *prototype) withoutBroadcast() *prototype {
	for _, f := range p.fields {
		if f.cast {
			p.problem("field %s of %s is broadcast state, but no input of the operator is broadcast: join it to one with ConnectBroadcast", f.path, p.label)
		}
	}
	return p
}

func (p *prototype) problem(format string, args ...any) {
	p.problems = append(p.problems, fmt.Sprintf(format, args...))
}

// optional is a method that a function may have.
type optional struct {
	name string
	want reflect.Type // an interface with just that method
}

func optionalOf[I any](name string) optional { return optional{name, reflect.TypeFor[I]()} }

func (m optional) check(p *prototype, t reflect.Type) {
	have, ok := t.MethodByName(m.name)
	if !ok && t.Kind() != reflect.Pointer {
		if have, ok = reflect.PointerTo(t).MethodByName(m.name); ok && reflect.PointerTo(t).Implements(m.want) {
			p.problem("method %s of %s has a pointer receiver: pass &%s{...}", m.name, t, t.Name())
			return
		}
	}
	if !ok || t.Implements(m.want) {
		return
	}
	p.problem("method %s of %s is %s, but would be called only as %s", m.name, t, withoutReceiver(have.Type), m.want.Method(0).Type)
}

func withoutReceiver(t reflect.Type) string {
	in := make([]string, 0, t.NumIn())
	for i := 1; i < t.NumIn(); i++ {
		in = append(in, t.In(i).String())
	}
	out := make([]string, t.NumOut())
	for i := range out {
		out[i] = t.Out(i).String()
	}
	s := "func(" + strings.Join(in, ", ") + ")"
	switch len(out) {
	case 0:
		return s
	case 1:
		return s + " " + out[0]
	}
	return s + " (" + strings.Join(out, ", ") + ")"
}

var (
	keyedFieldType    = reflect.TypeFor[keyedField]()
	operatorFieldType = reflect.TypeFor[operatorField]()

	broadcastFieldType = reflect.TypeFor[broadcastField]()
	sideFieldType      = reflect.TypeFor[sideField]()
	timeType           = reflect.TypeFor[time.Time]() // a value, though with a pointer to its zone
	lockerType         = reflect.TypeFor[interface {
		Lock()
		Unlock()
	}]()
)

func isState(t reflect.Type) bool {
	t = reflect.PointerTo(t)
	return t.Implements(keyedFieldType) || t.Implements(operatorFieldType)
}

func isSide(t reflect.Type) bool { return reflect.PointerTo(t).Implements(sideFieldType) }

// walk looks at the fields of a struct and of the structs within. path is the way here in Go, prefix that of state names.
func (p *prototype) walk(v reflect.Value, index []int, path, prefix string) {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(append([]int(nil), index...), i)
		where := path + f.Name
		switch {
		case isState(f.Type):
			p.state(f, at, where, prefix)
		case isSide(f.Type):
			p.side(f, at, where)
		case f.Tag.Get("weir") == "shared", f.Type == timeType:
		case f.Type.Kind() == reflect.Struct:
			if reflect.PointerTo(f.Type).Implements(lockerType) {
				p.problem("field %s of %s is a lock (%s): each subtask has its own copy of the struct, so it would guard nothing; make it in Open, or share a pointer to it with the tag `weir:\"shared\"`", where, p.label, f.Type)
				continue
			}
			inner := prefix
			if !f.Anonymous {
				inner += f.Name + "."
			}
			if name := f.Tag.Get("state"); name != "" {
				inner = prefix + name + "."
			}
			p.walk(v.Field(i), at, where+".", inner)
		default:
			p.plain(f, v.Field(i), where)
		}
	}
}

// state declares a state field.
func (p *prototype) state(f reflect.StructField, at []int, where, prefix string) {
	tag, tagged := f.Tag.Lookup("state")
	switch {
	case !f.IsExported():
		p.problem("state field %s of %s is not exported: write it with a capital letter", where, p.label)
	case !tagged:
		p.problem("state field %s of %s has no name: give it a tag `state:%q`", where, p.label, strings.ToLower(f.Name))
	default:
		spec, err := parseSpec(tag)
		if err != nil {
			p.problem("state field %s of %s: %v", where, p.label, err)
			return
		}
		spec.Name = prefix + spec.Name
		if p.rename != nil {
			spec.Name = p.rename(spec.Name)
		}
		p.fields = append(p.fields, fieldOf{path: where, index: at, spec: spec, cast: reflect.PointerTo(f.Type).Implements(broadcastFieldType)})
	}
}

// side declares a side output.
func (p *prototype) side(f reflect.StructField, at []int, where string) {
	name := f.Tag.Get("side")
	switch {
	case !f.IsExported():
		p.problem("side output %s of %s is not exported: write it with a capital letter", where, p.label)
	case name == "":
		p.problem("side output %s of %s has no name: give it a tag `side:%q`", where, p.label, strings.ToLower(f.Name))
	default:
		p.fields = append(p.fields, fieldOf{path: where, index: at, side: name})
	}
}

// plain refuses fields that the copies of several subtasks would share by accident, and state that cannot be found.
func (p *prototype) plain(f reflect.StructField, v reflect.Value, where string) {
	if e := innermost(f.Type); e != f.Type && (isState(e) || isSide(e)) {
		p.problem("field %s of %s is a %s: state and side outputs must be fields themselves, not in a slice, array or map, nor behind a pointer", where, p.label, f.Type)
		return
	}
	switch f.Type.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Chan, reflect.Interface:
		if v.IsNil() || f.Type.Kind() == reflect.Interface && !refers(v.Elem()) {
			return
		}
		p.problem("field %s of %s is a %s that all subtasks would share: make it in Open, or say that it is shared with the tag `weir:\"shared\"`", where, p.label, f.Type)
	}
}

// innermost is what a type holds or points to, through any number of slices, arrays, maps and pointers.
func innermost(t reflect.Type) reflect.Type {
	for {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			t = t.Elem()
		default:
			return t
		}
	}
}

// refers is true where copies of v share something.
func refers(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Chan:
		return !v.IsNil()
	}
	return false
}

// parseSpec reads the tag of a state field: name[,ttl=1h][,was=oldname][,immutable].
func parseSpec(tag string) (state.Spec, error) {
	name, rest, _ := strings.Cut(tag, ",")
	spec := state.Spec{Name: name}
	if name == "" {
		return spec, fmt.Errorf("the tag `state:%q` begins with no name", tag)
	}
	for option := range strings.SplitSeq(rest, ",") {
		key, value, _ := strings.Cut(option, "=")
		switch key {
		case "":
		case "ttl":
			d, err := time.ParseDuration(value)
			if err != nil || d <= 0 {
				return spec, fmt.Errorf("the tag `state:%q` has ttl=%s: want a duration such as ttl=24h", tag, value)
			}
			spec.TTL = d
		case "was":
			spec.Was = value
		case "immutable":
			spec.Immutable = true
		default:
			return spec, fmt.Errorf("the tag `state:%q` has the option %q: there are ttl=DURATION, was=OLDNAME and immutable", tag, option)
		}
	}
	return spec, nil
}

// instance is a subtask's copy of the function, and where its declared fields were bound.
type instance struct {
	function any
	sides    []sideOutput
	keyed    bool // some field is state by key
	operator bool // some field is state of the subtask
	locked   bool // BroadcastMaps may not be changed
}

// sideOutput is a bound side output.
type sideOutput struct {
	name string
	typ  reflect.Type // of its records
	out  operator.Output
}

// copy makes a subtask's function, and binds its fields. keyed: nil where the operator has no keys.
func (p *prototype) copy(keyed state.Table, ops *state.Operator, at *base.EventTime) (*instance, error) {
	in := &instance{function: p.original}
	if p.copied == nil {
		return in, nil
	}
	fresh := reflect.New(p.copied)
	fresh.Elem().Set(reflect.ValueOf(p.original).Elem())
	in.function = fresh.Interface()
	for _, f := range p.fields {
		if err := in.bind(fresh.Elem().FieldByIndex(f.index).Addr().Interface(), f, keyed, ops, at); err != nil {
			return nil, fmt.Errorf("field %s of %s: %w", f.path, p.label, err)
		}
	}
	return in, nil
}

func (in *instance) bind(field any, f fieldOf, keyed state.Table, ops *state.Operator, at *base.EventTime) error {
	switch field := field.(type) {
	case sideField:
		in.sides = append(in.sides, sideOutput{f.side, field.sideType(), field.bindSide(at)})
		return nil
	case operatorField:
		in.operator = true
		if cast, ok := field.(broadcastField); ok {
			cast.lockedBy(&in.locked)
		}
		return field.bindOperator(ops, f.spec)
	case keyedField:
		if keyed == nil {
			return fmt.Errorf("state %q is state by key, but the stream has no keys: call KeyBy before Process, or use weir.OperatorList", f.spec.Name)
		}
		in.keyed = true
		return field.bindKeyed(keyed, f.spec)
	}
	return fmt.Errorf("a field of type %T cannot be bound", field)
}
