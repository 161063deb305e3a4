package config

import "time"

const (
	// RestOff is the RestPort of a job that serves no REST.
	RestOff = -1
	// restPortsMost is the largest port.
	restPortsMost = 1<<16 - 1
)

// RestPort is the port of a job's REST, and of whoever asks it.
var RestPort = &Option[int]{
	Key:     "rest.port",
	Default: 8081,
	Doc: "The port at which a job serves REST while it runs; the log says its address. Without a value it is the first free one from 8081 on. `0`: any free one. `-1`: none, and nobody can ask the job anything. " +
		"Also the port that `weir list`, `stop` and so on ask, where `-m` names none.",
	Differs: "Flink has no `-1`, and fails where 8081 is taken.",
	kind:    ints,
	limit:   between(ints, RestOff, restPortsMost),
}

// RestBindAddress is where a job's REST listens.
var RestBindAddress = &Option[string]{
	Key:     "rest.bind-address",
	Default: "127.0.0.1",
	Doc: "The address at which a job serves REST. Whoever reaches it can stop the job and delete its savepoints: there are neither users nor passwords. " +
		"`0.0.0.0` is every address of the machine.",
	kind:  strs,
	limit: notEmpty,
}

// RestAddress is where REST is asked.
var RestAddress = &Option[string]{
	Key:     "rest.address",
	Default: "127.0.0.1",
	Doc:     "The host that `weir list`, `stop` and so on ask, where `-m` names none.",
	kind:    strs,
	limit:   notEmpty,
}

// ClientTimeout is how long the command line waits for a savepoint.
var ClientTimeout = &Option[time.Duration]{
	Key:   "client.timeout",
	Unset: "as long as the job itself waits for a checkpoint",
	Doc: "How long `weir savepoint`, `stop`, `checkpoint` and `cancel -s` wait for what they have asked for. After that they say that it is still " +
		"under way, and exit with 2: the job goes on with it.",
	Differs: "Flink waits 60 s, and reports a failure of what may yet succeed.",
	kind:    durations,
	limit:   atLeast(durations, time.Millisecond),
}

// CheckpointHistory is how many checkpoints the statistics remember one by one.
var CheckpointHistory = &Option[int]{
	Key:     "web.checkpoints.history",
	Default: 10,
	Doc:     "How many of the last checkpoints, savepoints included, a job remembers one by one, for REST and `weir checkpoints`.",
	kind:    ints,
	limit:   between(ints, 1, 10_000),
}
