package config

import (
	"fmt"
	"os"
)

// RoleVariable names what a process is of its job, and PlanFileVariable where a planning one writes. Who starts a process for a part
// of its own sets them, such as the command line; a role never comes by arguments, which are the program's.
const (
	RoleVariable     = "WEIR_ROLE"
	PlanFileVariable = "WEIR_PLAN_FILE"
)

// Role is what a process is of its job.
type Role string

const (
	// RoleAlone is all of it: a person ran the program.
	RoleAlone Role = ""
	// RolePlan says what the job is, and runs nothing.
	RolePlan Role = "plan"
)

// OwnRole is what this process is of its job.
func OwnRole() (Role, error) {
	switch r := Role(os.Getenv(RoleVariable)); r {
	case RoleAlone, RolePlan:
		return r, nil
	default:
		return r, fmt.Errorf("weir: $%s is %q: there is only %q; to run the job, unset it", RoleVariable, r, RolePlan)
	}
}

// PlanFile is the file to which a planning process writes.
func PlanFile() (string, error) {
	file := os.Getenv(PlanFileVariable)
	if file == "" {
		return "", fmt.Errorf("weir: $%s is %q, but $%s names no file for the plan; `weir info` sets both, and prints it", RoleVariable, RolePlan, PlanFileVariable)
	}
	return file, nil
}
