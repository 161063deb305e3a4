// Command weir is Weir's command line.
//
//	weir run [-t local] [-s PATH|latest|latest-or-start] [-n] [--claimMode MODE] [-p N] [-D KEY=VALUE]... [--config FILE] BINARY [ARGUMENT]...
//	weir check -s PATH|latest [-n] [-p N] [-D KEY=VALUE]... [--config FILE] [--json] BINARY [ARGUMENT]...
//	weir info [-s PATH] [-n] [-p N] [-D KEY=VALUE]... [--config FILE] BINARY [ARGUMENT]...
//	weir list [-a] [-r] [-s]
//	weir savepoint [--type canonical|native] [-detached] JOB [DIR]
//	weir savepoint -d PATH
//	weir savepoint inspect|verify [--json] PATH
//	weir savepoint diff [--json] PATH PATH
//	weir savepoint cat [--key JSON]... [--limit N] PATH OPERATOR STATE
//	weir savepoint to-avro PATH DIR
//	weir stop [--savepointPath DIR] [--drain] [--type canonical|native] JOB
//	weir checkpoint [--full] JOB
//	weir checkpoints [--json] JOB [CHECKPOINT]
//	weir cancel [-s DIR] JOB
//	weir version
//
// A job is a program of its own, with the engine inside; so run does little: it puts Weir's arguments in front of the job's
// own, with "--" between them, and becomes the job's process. Standard input and output, signals and the exit status are
// the job's from then on. Check and info start the same program in a role in which it only says what its job is. The actions from list to cancel ask a running job over REST (-m HOST:PORT), as Flink's would; those of savepoint
// that look into one ask nobody.
//
// What it hides is this way of passing arguments (package config reads them again), and the manners of Flink's command line: its
// words, its messages, and exit status 1 for every failure; 2 says that what was asked for is still under way, or that
// check could not look.
//
// There is no goroutine here.
package main
