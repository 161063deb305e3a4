//go:build !unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
)

// become runs a program in this one's place: with its input and output, and ending as it ends. An interrupt from the keyboard
// reaches both processes, and is the program's business.
func become(binary string, args []string) error {
	signal.Ignore(os.Interrupt)
	c := exec.Command(binary, args...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := c.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		os.Exit(0)
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	}
	return fmt.Errorf("The job's binary cannot be run: %s: %w", binary, err)
}
