package main

import (
	"slices"
	"strings"
)

// longWords are the options that Flink writes with one dash and several letters, and how they are written here.
var longWords = map[string]string{
	"-type": "--type", "-detached": "--detached", "-full": "--full", "-drain": "--drain",
	"-cm": "--claimMode", "-rm": "--restoreMode",
}

// withBinary are the actions that take the binary of a job.
var withBinary = []string{"run", "check", "info"}

// valued are the options of these that have a value; what follows one of them is none of the words that begin the job's own arguments.
var valued = []string{"-t", "--target", "-s", "--fromSavepoint", "-p", "--parallelism", "-D", "--property", "--config", "--claimMode", "--restoreMode"}

// spelt spells Flink's options with one dash as they are spelt here. What follows the binary of a job is the job's, and stays as it is.
func spelt(args []string) []string {
	all := slices.Clone(args)
	for i := 0; i < len(all); i++ {
		name, value, given := strings.Cut(all[i], "=")
		if long, ok := longWords[name]; ok {
			name = long
			all[i] = long
			if given {
				all[i] += "=" + value
			}
		}
		if i == 0 || !slices.Contains(withBinary, all[0]) {
			continue
		}
		if !strings.HasPrefix(all[i], "-") || all[i] == "--" {
			break
		}
		if !given && slices.Contains(valued, name) {
			i++
		}
	}
	return all
}
