# All that is needed is Go (any since 1.21: it fetches the version named here) and git; a C compiler for the race detector.
export GOTOOLCHAIN := go1.27.3

SEED ?=
SIM_SECONDS ?= 60
SOAK_SECONDS ?=
TRIALS ?= 1000
COMBINATIONS ?= 1280
PROCESSES ?= 50
BENCH_FLINK ?=
FUZZ ?= .
FUZZ_SECONDS ?= 60

.DEFAULT_GOAL := help
.PHONY: help demo test test-flink build check fmt bench-quick bench bench-flink sim soak soak-count soak-incremental fuzz

help: ## print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## count the words of Go's own source, kill -9 the job twice, compare to the last record
	@go run ./examples/demo

test: ## vet and all tests, with the race detector where there is a C compiler
	go vet ./...
	@if reason=$$(go build -race net 2>&1); then \
		echo "go test -race ./..."; go test -race -timeout 15m ./...; \
	else \
		printf '%s\n' '' '**** WITHOUT THE RACE DETECTOR: it does not work here.' "**** $$reason" \
			'**** Install a C compiler (gcc or clang), and leave CGO_ENABLED alone.' ''; \
		echo "go test ./..."; go test -timeout 15m ./...; \
	fi

test-flink: ## let the real flink command line loose on a job of Weir's; fetches Flink from PyPI once, and needs Java
	@home=$$(testflink/install.sh) || exit $$?; \
	WEIR_TEST_FLINK=$$home go test ./testflink -count=1 -timeout 5m

build: ## bin/weir, and the examples in bin/examples/
	@mkdir -p bin/examples
	go build -o bin/ ./cmd/weir
	go build -o bin/examples/ ./examples/...

check: ## what must hold before a commit: formatting, go.mod, and make test
	@unformatted=$$("$$(go env GOROOT)/bin/gofmt" -l .); \
	if [ -n "$$unformatted" ]; then echo "make fmt would change:" $$unformatted; exit 1; fi
	go mod verify
	@$(MAKE) --no-print-directory test

fmt: ## format all source
	go fmt ./...

bench-quick: ## the most important figures, in under a minute
	@go run ./internal/bench -quick

bench: ## all figures of docs/benchmarks.md
	@go run ./internal/bench

bench-flink: ## Weir beside Apache Flink, 8 minutes, after bench/flink/install.sh; BENCH_FLINK="-only q0" and so on
	@go run ./bench/flink $(BENCH_FLINK)

sim: ## simulate the protocol and find planted faults: SIM_SECONDS=60, SEED= to begin with; the last line sums up
	@mkdir -p bin
	@go test -c -o bin/job.test ./internal/job
	@go test -c -o bin/checkpoint.test ./internal/checkpoint
	@cd internal/job && SIM_SECONDS=$(SIM_SECONDS) ../../bin/job.test \
		-test.run 'TestSimulation$$|TestPlantedFaults' -test.v -sim.runs=10000 -sim.seed=$(or $(SEED),0)
	@cd internal/checkpoint && SIM_SECONDS=$(SIM_SECONDS) SEED=$(SEED) ../../bin/checkpoint.test \
		-test.run 'TestSimulation$$|TestPlantedFaults' -test.v

soak: ## jobs through failures of every kind: TRIALS=1000 and COMBINATIONS=1280 by seed, SOAK_SECONDS=600 of kills, SEED= to begin with
	TRIALS=$(TRIALS) COMBINATIONS=$(COMBINATIONS) PROCESSES=$(PROCESSES) SEED=$(SEED) go test ./internal/trial -run 'TestTrials|TestCombinations|TestProcesses' -count=1 -timeout 0
	SOAK_SECONDS=$(or $(SOAK_SECONDS),600) SEED=$(SEED) go test ./examples/j1 -run TestSoak -count=1 -timeout 0 -v

soak-count: ## a keyed count at 200,000 records/s, a checkpoint each 200 ms, an error each 20 s: SOAK_SECONDS=1800; does anything grow?
	SOAK_COUNT=1 SOAK_SECONDS=$(or $(SOAK_SECONDS),1800) go test ./internal/trial -run 'TestSoakCount$$' -count=1 -timeout 0 -v

fuzz: ## let random bytes loose on every decoder: FUZZ_SECONDS=60 for each, FUZZ=Rows for those called so; what fails is kept in testdata/fuzz
	@failed=; for package in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' | grep -e '$(FUZZ)'); do \
			echo "$$package $$target"; \
			go test $$package -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZ_SECONDS)s -fuzzminimizetime 5s || failed="$$failed $$package:$$target"; \
		done; \
	done; \
	if [ -n "$$failed" ]; then echo "FAILED:$$failed"; exit 1; fi

soak-incremental: ## a keyed count of 1 M keys at 100,000 records/s, an incremental checkpoint each 100 ms: SOAK_SECONDS=600; under 300 MB
	SOAK_INCREMENTAL=1 SOAK_SECONDS=$(or $(SOAK_SECONDS),600) go test ./internal/trial -run 'TestSoakIncremental$$' -count=1 -timeout 0 -v
