// Package weirtest tests jobs.
package weirtest
