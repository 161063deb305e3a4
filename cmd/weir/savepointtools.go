package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/inspect"
	"github.com/weirstream/weir/internal/storage"
)

// The savepoint's tools read a snapshot by itself: neither a job nor its program is asked.

// exitTrouble is the exit status of diff where the snapshots could not be compared: as with diff(1), 1 says that they differ.
const exitTrouble = 2

// toolCommand is a command that looks at snapshots.
func toolCommand(use, short, long, example string, run func(c *cobra.Command, args []string) error, args cobra.PositionalArgs) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: short + "\n\n" + long, Example: example, DisableFlagsInUseLine: true,
		Args: func(c *cobra.Command, all []string) error {
			if err := args(c, all); err != nil {
				return usageError(c, err)
			}
			return nil
		},
		RunE: run,
	}
}

// withSnapshot opens a snapshot for the length of a call.
func withSnapshot(path string, do func(*inspect.Snapshot) error) error {
	s, err := inspect.Open(storage.Disk(), path)
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}

// texter is what a command prints.
type texter interface{ WriteText(io.Writer) error }

func newInspect() *cobra.Command {
	var asJSON bool
	c := toolCommand("inspect [--json] <path>", "Shows what is in a savepoint or checkpoint.",
		"It reads metadata and the ends of files only, however large they are. A number that is not known without reading all is \"-\".",
		"  weir savepoint inspect /savepoints/savepoint-fd7201-d7a4a7a8e4d6",
		func(c *cobra.Command, args []string) error {
			return withSnapshot(args[0], func(s *inspect.Snapshot) error { return print(c.OutOrStdout(), s.Summary(), asJSON) })
		}, cobra.ExactArgs(1))
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

// print prints as text or as JSON.
func print(out io.Writer, what texter, asJSON bool) error {
	if asJSON {
		return printJSON(out, what)
	}
	return what.WriteText(out)
}

func newDiff() *cobra.Command {
	var asJSON bool
	c := toolCommand("diff [--json] <path before> <path after>", "Shows how two savepoints or checkpoints differ.",
		"Operators are found again by their UIDs, states by their names. The exit status is 0 if both have the same shape: the same operators, states\n"+
			"and types. It is 1 if not, and 2 if they could not be compared.",
		"  weir savepoint diff /savepoints/before /savepoints/after",
		func(c *cobra.Command, args []string) error {
			d, err := diff(args[0], args[1])
			if err == nil {
				err = print(c.OutOrStdout(), d, asJSON)
			}
			switch {
			case err != nil:
				return &exitError{exitTrouble, err.Error()}
			case !d.SameShape():
				return &exitError{1, "The snapshots differ."}
			}
			return nil
		}, cobra.ExactArgs(2))
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

func diff(before, after string) (d *inspect.Difference, err error) {
	err = withSnapshot(before, func(a *inspect.Snapshot) error {
		return withSnapshot(after, func(b *inspect.Snapshot) error {
			d = inspect.Diff(a, b)
			return nil
		})
	})
	return d, err
}

func newCat() *cobra.Command {
	var q inspect.Query
	c := toolCommand("cat [--key JSON]... [--limit N] <path> <operator> <state>", "Prints the entries of a state, a line of JSON each.",
		"The operator is named by its UID, or by its name where only one has it. Beside its states it has \"timers\", and it may have \"coordinator\"\n"+
			"(a source's enumerator) and \"in-flight\" (records that a checkpoint overtook). With --key only the parts of the files are read that can\n"+
			"have the key.",
		"  weir savepoint cat /savepoints/savepoint-fd7201-d7a4a7a8e4d6 counts total --key '\"user-42\"'",
		func(c *cobra.Command, args []string) error {
			q.Operator, q.State = args[1], args[2]
			out := bufio.NewWriter(c.OutOrStdout())
			err := withSnapshot(args[0], func(s *inspect.Snapshot) error { return s.WriteEntries(out, q) })
			return errors.Join(out.Flush(), err)
		}, cobra.ExactArgs(3))
	c.Flags().StringArrayVar(&q.Keys, "key", nil, "only the entries of this key, as `JSON`; may be repeated")
	c.Flags().IntVar(&q.Limit, "limit", 0, "print `N` entries at most")
	return c
}

func newVerify() *cobra.Command {
	var asJSON bool
	c := toolCommand("verify [--json] <path>", "Reads all of a savepoint or checkpoint, and verifies every checksum.",
		"Files that it does not name are told, and harm nobody. The exit status is 0 if all is as it was written, else 1.",
		"  weir savepoint verify /savepoints/savepoint-fd7201-d7a4a7a8e4d6",
		func(c *cobra.Command, args []string) error {
			return withSnapshot(args[0], func(s *inspect.Snapshot) error {
				v, err := s.Verify()
				if v != nil {
					err = errors.Join(err, print(c.OutOrStdout(), v, asJSON))
				}
				if err == nil && len(v.Faults) > 0 {
					err = fmt.Errorf("%s is damaged.", s.Location)
				}
				return err
			})
		}, cobra.ExactArgs(1))
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

func newToAvro() *cobra.Command {
	return toolCommand("to-avro <path> <directory>", "Makes a canonical savepoint of a savepoint or checkpoint.",
		"Its states are files that every Avro reader reads, and a job starts from it as from any savepoint. The directory must be empty or not be\n"+
			"there. Nothing is changed in what it is made of.",
		"  weir savepoint to-avro /checkpoints/902004b38894ad5f013dde716bf994b1/chk-7 /savepoints/july",
		func(c *cobra.Command, args []string) error {
			return withSnapshot(args[0], func(s *inspect.Snapshot) error {
				location, err := s.WriteCanonical(args[1])
				if err != nil {
					return err
				}
				fmt.Fprintf(c.OutOrStdout(), "Savepoint completed. Path: file:%s\nYou can resume your program from this savepoint with the run command.\n", location)
				return nil
			})
		}, cobra.ExactArgs(2))
}
