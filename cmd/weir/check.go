package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/cluster"
	"github.com/weirstream/weir/internal/fit"
)

// The exit statuses of check, beside 0: it fits.
const (
	exitUnfit     = 1 // the snapshot was looked at, and does not fit
	exitUnchecked = 2 // a mistake in the arguments, no such snapshot, a damaged one, or a program that says nothing of its job
)

func newCheck() *cobra.Command {
	var o runOptions
	var asJSON bool
	c := &cobra.Command{
		Use:   "check -s <path> [OPTIONS] <binary> [<arguments>]",
		Short: "Says whether a job could start from a savepoint or checkpoint.",
		Long: "Says whether a job could start from a savepoint or checkpoint, and what would become of each state in it. Nothing is started, no input is\n" +
			"opened and nothing is changed: the job may be running meanwhile. The options are those of run.\n\n" +
			"What is said of a state: same; migrate, its values become those of another type; new, it starts empty; dropped, nothing takes it; refused.\n\n" +
			"The exit status is 0 if the job could start, 1 if it could not, and 2 if that cannot be said.",
		Example: "  weir check -s /savepoints/savepoint-5a2c1f-0b1d2e3f ./wordcount -input words.txt\n" +
			"  weir check -s latest ./wordcount && weir stop 5a2c1f... && weir run -s latest ./wordcount",
		DisableFlagsInUseLine: true,

		RunE: func(c *cobra.Command, args []string) error {
			report, err := o.check(c, args)
			if err != nil {
				return &exitError{exitUnchecked, err.Error()}
			}
			return printCheck(c.OutOrStdout(), report, asJSON)
		},
	}
	f := c.Flags()
	f.SetInterspersed(false)
	f.SortFlags = false
	o.restoreFlags(f)
	f.BoolVar(&asJSON, "json", false, "print all that was found, as JSON")
	o.jobFlags(f)
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return &exitError{exitUnchecked, usageError(c, err).Error()} })
	return c
}

// check asks the job's program what becomes of the snapshot: the engine in it judges, by what its own start would ask. A nil report: it
// would start empty.
func (o *runOptions) check(c *cobra.Command, args []string) (*fit.Report, error) {
	if !c.Flags().Changed("fromSavepoint") {
		return nil, usageError(c, errors.New("Missing snapshot. Specify what the job would start from: -s <path>, or -s latest."))
	}
	p, _, err := o.plan(c, args)
	if err != nil {
		return nil, err
	}
	r := p.Restore
	if r == nil {
		r = &cluster.PlanRestore{Error: "The job's program would start from nothing, though -s was given: it does not read its arguments."}
	}
	if r.Error != "" {
		return nil, errors.New(r.Error)
	}
	return r.Report, nil
}

// printCheck prints the report; the error has the exit status.
func printCheck(out io.Writer, r *fit.Report, asJSON bool) error {
	switch {
	case asJSON:
		var all any = r
		if r == nil {
			all = map[string]bool{"fits": true, "starts_empty": true}
		}
		if err := printJSON(out, all); err != nil {
			return err
		}
	case r == nil:
		fmt.Fprintln(out, "There is no snapshot yet: the job would start empty.")
	default:
		if err := r.WriteText(out); err != nil {
			return err
		}
	}
	if r != nil && !r.Fits {
		return &exitError{status: exitUnfit}
	}
	return nil
}
