// Package testflink lets the real command line of Apache Flink loose on a job of Weir's: list, savepoint, checkpoint, stop, cancel and
// disposal, with what it prints and how it exits. It hides where Flink comes from (install.sh) and how it is pointed at a job.
//
//	make test-flink
//
// The program is only a test. Directory throwable has the Java program that wrote the exception which package rest patches.
//
// There is no goroutine here but those of the test.
package testflink
