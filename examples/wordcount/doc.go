// Wordcount counts the words in text files:
//
//	go run ./examples/wordcount README.md docs
//
// Directories are read at any depth. At the end it prints the words that came most often; with -out the counts of all words
// are files of a directory, too, each word once, and a run that was interrupted can go on:
//
//	go run ./examples/wordcount -out counts docs               # Ctrl-C, or kill -9
//	go run ./examples/wordcount -out counts -s latest docs
//
// Weir's own arguments work as in every job: -p 4 for four subtasks, -D key=value for any option of docs/config.md.
package main
