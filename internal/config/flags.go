package config

import (
	"errors"
	"fmt"
	"strings"
)

// Flags is what Weir's own arguments say.
type Flags struct {
	// File is the configuration file named by --config; "": none was named.
	File string
	// Settings are the keys that -s, -n, --claimMode, -p and -D set, in the order of the command line.
	Settings Layer
}

// Take parts Weir's own arguments from those of a job's program. Given os.Args[1:] it returns what Weir's arguments say, and
// the others in their order:
//
//	-s, --fromSavepoint PATH         start from a savepoint or checkpoint, or from "latest" or "latest-or-start"
//	-n, --allowNonRestoredState      leave state behind that no operator takes
//	-cm, --claimMode MODE            whose the snapshot is that -s names: no_claim or claim (-rm, --restoreMode: its old name)
//	-p, --parallelism N              parallelism of operators that set none
//	-D KEY=VALUE, -DKEY=VALUE        any option; may be repeated, the last of a key counts
//	--config FILE                    the configuration file
//
// A value may follow with "=" too: --config=FILE, -p=4. Take knows nothing of the program's flags, so it takes these wherever
// they stand, until "--". A "--" before any argument of the program ends Weir's part and is dropped: what follows is the
// program's, whatever it looks like. A later "--" is the program's own; it stays, and nothing behind it is Weir's.
//
// The error names all that is wrong with Weir's arguments. The rest is whole all the same: a program that looks at its own
// arguments first must not miss one that was given.
func Take(args []string) (f Flags, rest []string, err error) {
	var problems []error
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			if len(rest) == 0 {
				i++
			}
			return f, append(rest, args[i:]...), errors.Join(problems...)
		}
		own, name, value, given := recognise(args[i])
		if own == nil {
			rest = append(rest, args[i])
			continue
		}
		if !given && own.implied != "" {
			value, given = own.implied, true
		}
		if !given {
			if i+1 == len(args) || strings.HasPrefix(args[i+1], "-") {
				problems = append(problems, fmt.Errorf("weir: %s wants a value: %s", name, own.usage))
				continue
			}
			i++
			value = args[i]
		}
		if err := own.take(&f, value, Origin(name)); err != nil {
			problems = append(problems, fmt.Errorf("weir: %s %s: %w; want %s", name, value, err, own.usage))
		}
	}
	return f, rest, errors.Join(problems...)
}

// ownFlag is one of Weir's own.
type ownFlag struct {
	short, long string // "": it has none
	usage       string
	implied     string // the value where none is given; "": one must be given
	take        func(f *Flags, value string, from Origin) error
}

var property = ownFlag{short: "-D", usage: "-D KEY=VALUE", take: takeProperty}

var namedFlags = []ownFlag{
	{"-s", "--fromSavepoint", "-s PATH, -s latest or -s latest-or-start", "", takeKey(SavepointPath)},
	{"-n", "--allowNonRestoredState", "-n", "true", takeKey(AllowNonRestored)},
	{"-cm", "--claimMode", "--claimMode no_claim or --claimMode claim", "", takeKey(RestoreClaim)},
	{"-rm", "--restoreMode", "--restoreMode no_claim or --restoreMode claim", "", takeKey(RestoreClaim)},
	{"-p", "--parallelism", "-p N", "", takeKey(Parallelism)},
	{"", "--config", "--config FILE", "", takeFile},
}

// recognise finds the flag that an argument is, if any; given: the argument holds its value too.
func recognise(arg string) (own *ownFlag, name, value string, given bool) {
	if text, ok := strings.CutPrefix(arg, property.short); ok {
		return &property, property.short, text, text != ""
	}
	name, value, given = strings.Cut(arg, "=")
	for i := range namedFlags {
		own = &namedFlags[i]
		if name != "" && (name == own.short || name == own.long) {
			return own, name, value, given
		}
	}
	return nil, "", "", false
}

// takeKey is for a flag that stands for an option.
func takeKey(o option) func(*Flags, string, Origin) error {
	return func(f *Flags, value string, from Origin) error {
		if _, err := o.decode(value); err != nil {
			return err
		}
		f.Settings.Set(o.key(), value, from)
		return nil
	}
}

func takeProperty(f *Flags, text string, from Origin) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return errors.New("is not KEY=VALUE")
	}
	f.Settings.Set(strings.TrimSpace(key), strings.TrimSpace(value), from)
	return nil
}

func takeFile(f *Flags, path string, _ Origin) error {
	if path == "" {
		return errors.New("is empty")
	}
	f.File = path
	return nil
}
