package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the whole command with these arguments; it returns the exit status: 1 for every failure, as in Flink, and 2 where what was
// asked for is still under way, or cannot be checked.
func run(args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(spelt(args))
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.Execute(); err != nil {
		if text := err.Error(); text != "" {
			fmt.Fprintln(stderr, text)
		}
		var own *exitError
		if errors.As(err, &own) {
			return own.status
		}
		return 1
	}
	return 0
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "weir <ACTION> [OPTIONS] [ARGUMENTS]",
		Short:         "Runs jobs of the stateful stream processor Weir.",
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          withoutAction,
	}
	root.DisableFlagsInUseLine = true
	root.SetVersionTemplate("{{.Version}}\n")
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(&cobra.Command{Hidden: true})
	root.SetFlagErrorFunc(usageError)
	root.AddCommand(newRun(), newCheck(), newInfo(), newList(), newSavepoint(), newStop(), newCancel(), newCheckpoint(), newCheckpoints(), newVersion())
	return root
}

// withoutAction is called where the first argument is no action.
func withoutAction(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		_ = c.Help()
		return errors.New("\nPlease specify an action.")
	}
	return fmt.Errorf("%q is not a valid action.\n\nValid actions are \"run\", \"check\", \"info\", \"list\", \"savepoint\", \"stop\", \"cancel\", \"checkpoint\", \"checkpoints\" and \"version\".\n\n"+
		"Specify the help option (-h or --help) to get help on the command.", args[0])
}

// usageError is a mistake in the arguments of an action.
func usageError(_ *cobra.Command, err error) error {
	return fmt.Errorf("%w\n\nUse the help option (-h or --help) to get help on the command.", err)
}
