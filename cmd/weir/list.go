package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/rest"
)

func newList() *cobra.Command {
	var a asker
	var running, scheduled, all bool
	c := &cobra.Command{
		Use:                   "list [OPTIONS]",
		Short:                 "Lists jobs.",
		Long:                  "Lists the job that is served at an address; without options those that run and those that are about to.",
		Args:                  cobra.NoArgs,
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := a.open(c)
			if err != nil {
				return err
			}
			out := c.OutOrStdout()
			fmt.Fprintln(out, "Waiting for response...")
			ctx, cancel := triggering()
			defer cancel()
			jobs, err := s.client.Jobs(ctx)
			if err != nil {
				return failed(err, "Failed to retrieve job list.")
			}
			both := !running && !scheduled
			listJobs(out, jobs, all || running || both, all || scheduled || both, all)
			return nil
		},
	}
	f := c.Flags()
	f.BoolVarP(&running, "running", "r", false, "list only jobs that run")
	f.BoolVarP(&scheduled, "scheduled", "s", false, "list only jobs that are about to run")
	f.BoolVarP(&all, "all", "a", false, "list also jobs that have ended")
	a.flags(f)
	return c
}

// stage is where a job stands, as the list has it.
type stage int

const (
	scheduledStage stage = iota
	runningStage
	terminatedStage
)

func stageOf(j rest.JobOverview) stage {
	switch j.State {
	case "CREATED", "INITIALIZING":
		return scheduledStage
	case "FINISHED", "CANCELED", "FAILED":
		return terminatedStage
	}
	return runningStage
}

func listJobs(out io.Writer, jobs []rest.JobOverview, running, scheduled, terminated bool) {
	if running {
		section(out, jobs, runningStage, "------------------ Running/Restarting Jobs -------------------", "No running jobs.")
	}
	if scheduled {
		section(out, jobs, scheduledStage, "----------------------- Scheduled Jobs -----------------------", "No scheduled jobs.")
	}
	if terminated {
		section(out, jobs, terminatedStage, "---------------------- Terminated Jobs -----------------------", "")
	}
}

// section lists the jobs of a stage: by state, then by start. Without one it says none, if there is something to say.
func section(out io.Writer, jobs []rest.JobOverview, of stage, title, none string) {
	here := slices.DeleteFunc(slices.Clone(jobs), func(j rest.JobOverview) bool { return stageOf(j) != of })
	if len(here) == 0 {
		if none != "" {
			fmt.Fprintln(out, none)
		}
		return
	}
	slices.SortFunc(here, func(a, b rest.JobOverview) int {
		return cmp.Or(strings.Compare(a.State, b.State), cmp.Compare(a.Start, b.Start))
	})
	fmt.Fprintln(out, title)
	for _, j := range here {
		fmt.Fprintf(out, "%s : %s : %s (%s)\n", time.UnixMilli(j.Start).Format("02.01.2006 15:04:05"), j.ID, j.Name, j.State)
	}
	fmt.Fprintln(out, strings.Repeat("-", len(title)))
}
