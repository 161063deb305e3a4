// Command readme is the program that README.md shows: it counts the words of the files in the directory input, and writes each
// running count to the directory output.
package main
