package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirstream/weir/internal/config"
)

// targetLocal is the value of -t for a job in one process; Flink's word.
const targetLocal = "local"

// runOptions are the options of run as they were written. What they mean, package config knows.
type runOptions struct {
	target           string
	savepoint        string
	allowNonRestored bool
	claimMode        string
	restoreMode      string
	parallelism      string
	properties       []string
	config           string
}

func newRun() *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:   "run [OPTIONS] <binary> [<arguments>]",
		Short: "Runs a job.",
		Long: "Runs a job: the program <binary>, which was built with package weir. What follows <binary> is the program's own.\n" +
			"The exit status is the job's.",
		Example: "  weir run -p 4 -D execution.checkpointing.dir=/var/lib/weir ./wordcount -input words.txt\n" +
			"  weir run -s latest ./wordcount -input words.txt",
		DisableFlagsInUseLine: true,

		RunE: func(c *cobra.Command, args []string) error { return runJob(c, o, args) },
	}
	f := c.Flags()
	f.SetInterspersed(false)
	f.SortFlags = false
	f.StringVarP(&o.target, "target", "t", targetLocal, "where the job runs: local, which is in one process here")
	o.restoreFlags(f)
	f.StringVar(&o.claimMode, "claimMode", "", "whose the snapshot is that -s names: no_claim (default), its owner's; claim, the job's, a `mode` (also -cm)")
	f.StringVar(&o.restoreMode, "restoreMode", "", "the old name of --claimMode (also -rm)")
	_ = f.MarkHidden("restoreMode")
	o.jobFlags(f)
	return c
}

// restoreFlags say what a job starts from.
func (o *runOptions) restoreFlags(f *pflag.FlagSet) {
	f.StringVarP(&o.savepoint, "fromSavepoint", "s", "", "`path` of a savepoint or checkpoint to start from; latest: the newest of this job;\n"+
		"latest-or-start: the same, but a job that never completed one starts empty")
	f.BoolVarP(&o.allowNonRestored, "allowNonRestoredState", "n", false, "leave state behind that no operator of the job takes")
}

// jobFlags say what a job is.
func (o *runOptions) jobFlags(f *pflag.FlagSet) {
	f.StringVarP(&o.parallelism, "parallelism", "p", "", "parallelism of the operators that set none, a `number`")
	f.StringArrayVarP(&o.properties, "property", "D", nil, "any option of docs/config.md, as `key=value`; may be repeated")
	f.StringVar(&o.config, "config", "", "the configuration `file` (default $WEIR_CONF_DIR/config.yaml, else ./config.yaml)")
}

// runJob becomes the job's process; it returns only with an error.
func runJob(c *cobra.Command, o runOptions, args []string) error {
	if o.target != targetLocal {
		return usageError(c, fmt.Errorf("There is no target %q. The only one is %q: the job runs in one process, here.", o.target, targetLocal))
	}
	if len(args) == 0 {
		return usageError(c, errors.New("The binary of the job is missing. Specify it after the options: weir run [OPTIONS] <binary> [<arguments>]"))
	}
	own := o.arguments(c)
	if _, _, err := config.Take(own); err != nil {
		return usageError(c, err)
	}
	binary, err := jobBinary(args[0])
	if err != nil {
		return err
	}
	return become(binary, append(append(own, "--"), args[1:]...))
}

// arguments are the options as the job's own process takes them.
func (o *runOptions) arguments(c *cobra.Command) (args []string) {
	add := func(name, arg, value string) {
		if c.Flags().Changed(name) {
			args = append(args, arg+"="+value)
		}
	}
	add("config", "--config", o.config)
	add("fromSavepoint", "-s", o.savepoint)
	add("allowNonRestoredState", "-n", fmt.Sprint(o.allowNonRestored))
	add("claimMode", "--claimMode", o.claimMode)
	add("restoreMode", "--restoreMode", o.restoreMode)
	add("parallelism", "-p", o.parallelism)
	for _, p := range o.properties {
		args = append(args, "-D", p)
	}
	return args
}

// jobBinary is the path of the job's program. Unlike a shell, and like Flink, it takes a bare name for a file that lies here.
func jobBinary(name string) (string, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("The job's binary does not exist: %s", name)
	case err != nil:
		return "", fmt.Errorf("The job's binary cannot be run: %w", err)
	case info.IsDir() || filepath.Ext(name) == ".go":
		return "", fmt.Errorf("%s is source, not a binary. Build the job first: go build -o job %s", name, name)
	}
	return filepath.Abs(name)
}
