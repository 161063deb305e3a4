//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"
)

// become replaces this process by a program. It returns only where that failed.
func become(binary string, args []string) error {
	err := syscall.Exec(binary, append([]string{binary}, args...), os.Environ())
	return fmt.Errorf("The job's binary cannot be run: %s: %w", binary, err)
}
