package main

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// listed is a job of the overview.
type listed struct {
	ID    string `json:"jid"`
	Name  string `json:"name"`
	State string `json:"state"`
	Start int64  `json:"start-time"` // milliseconds
}

func newList() *cobra.Command {
	var o clientOptions
	var running, scheduled, all bool
	c := &cobra.Command{
		Use:                   "list [OPTIONS]",
		Short:                 "Lists running and scheduled jobs.",
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if !running && !scheduled && !all {
				running, scheduled = true, true
			}
			fmt.Fprintln(c.OutOrStdout(), "Waiting for response...")
			var answer struct {
				Jobs []listed `json:"jobs"`
			}
			if err := o.client().call(c.Context(), http.MethodGet, "/jobs/overview", nil, &answer); err != nil {
				return failed(err, "Failed to retrieve job list.")
			}
			printJobs(c.OutOrStdout(), answer.Jobs, running || all, scheduled || all, all)
			return nil
		},
	}
	o.add(c)
	f := c.Flags()
	f.BoolVarP(&running, "running", "r", false, "running jobs only")
	f.BoolVarP(&scheduled, "scheduled", "s", false, "scheduled jobs only")
	f.BoolVarP(&all, "all", "a", false, "all jobs, terminated ones too")
	return c
}

// printJobs prints jobs by what they are doing.
func printJobs(w io.Writer, jobs []listed, running, scheduled, terminated bool) {
	by := map[string][]listed{}
	for _, j := range jobs {
		sort := "running"
		switch j.State {
		case "CREATED", "INITIALIZING":
			sort = "scheduled"
		case "FINISHED", "CANCELED", "FAILED":
			sort = "terminated"
		}
		by[sort] = append(by[sort], j)
	}
	section := func(sort, title, none string) {
		if len(by[sort]) == 0 {
			if none != "" {
				fmt.Fprintln(w, none)
			}
			return
		}
		fmt.Fprintln(w, title)
		printSorted(w, by[sort])
		fmt.Fprintln(w, strings.Repeat("-", 62))
	}
	if running {
		section("running", "------------------ Running/Restarting Jobs -------------------", "No running jobs.")
	}
	if scheduled {
		section("scheduled", "----------------------- Scheduled Jobs -----------------------", "No scheduled jobs.")
	}
	if terminated {
		section("terminated", "---------------------- Terminated Jobs -----------------------", "")
	}
}

func printSorted(w io.Writer, jobs []listed) {
	slices.SortFunc(jobs, func(a, b listed) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.State), strings.ToLower(b.State)), cmp.Compare(a.Start, b.Start))
	})
	for _, j := range jobs {
		fmt.Fprintf(w, "%s : %s : %s (%s)\n", time.UnixMilli(j.Start).Format("02.01.2006 15:04:05"), j.ID, j.Name, j.State)
	}
}
