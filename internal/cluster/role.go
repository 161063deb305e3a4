package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/weirstream/weir/internal/config"
)

// Role does what this process is for, where that is not to run the job, and ends it: then it does not return. Else it returns refused,
// which is why the job cannot run.
func Role(j Job, refused error) error {
	role, err := config.OwnRole()
	if err != nil {
		return err
	}
	if role == config.RoleAlone {
		return refused
	}
	if err := plan(j, refused); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
	panic("cluster: the process has not ended")
}

// plan writes the plan of the job. Its error is why the job cannot run, or that nothing could be written.
func plan(j Job, refused error) error {
	file, err := config.PlanFile()
	if err != nil {
		return err
	}
	p := &Plan{Version: PlanVersion, Options: []PlanOption{}, Vertices: []PlanVertex{}, Edges: []PlanEdge{}, Hooks: []string{}}
	if refused == nil {
		p = PlanOf(j)
	} else {
		p.Error = refused.Error()
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err = e.Encode(p); err == nil {
		err = os.WriteFile(file, text.Bytes(), 0o600)
	}
	if err != nil {
		return fmt.Errorf("weir: writing the plan to $%s: %w", config.PlanFileVariable, err)
	}
	return refused
}
