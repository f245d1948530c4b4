# The version that `make release` builds.
VERSION        ?= 0.1.0
# The tools' versions are pinned here; each is built once into .cache/bin.
GOLANGCI_LINT  := v2.12.2
WORKFLOWCHECK  := v0.6.0
CYCLONEDX      := v1.9.0
TEMPORAL_CLI   := v1.5.1
FUZZTIME       ?= 10s
CHAOS_SEED     ?= 1

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
BIN         := $(CURDIR)/.cache/bin
export PATH := $(BIN):$(PATH)
# The linter's cache is valid for one checkout only: a shared cache reports findings of other checkouts.
export GOLANGCI_LINT_CACHE := $(CURDIR)/.cache/golangci-lint

# Runs a command with a temporary PostgreSQL and Temporal.
AROUND := $(BIN)/jig-dev --ephemeral --no-worker --no-server --no-ui
# The same for benchmarks, with PostgreSQL's log of changes as in production.
AROUND_BENCH := $(AROUND) --pg-setting wal_level=replica,max_wal_size=2GB --
# The same for tests, which do not need their data on disk.
AROUND_TESTS := $(AROUND) --pg-setting fsync=off,full_page_writes=off --

# The time after which a suite counts as hanging. All suites are several times faster on two idle cores.
ROOT_TIMEOUT ?= 40m
E2E_TIMEOUT  ?= 60m
# The end-to-end tests mostly wait for each other's servers, so several run at once on each core.
E2E_PARALLEL ?= 8
E2E_FLAGS    := -timeout $(E2E_TIMEOUT) -parallel $(E2E_PARALLEL)
# The end-to-end tests use the programs in this folder instead of building them again.
export JIG_TEST_PROGRAMS := $(BIN)

.DEFAULT_GOAL := help
.PHONY: help demo dev build fetch temporal-cli jig-dev lint test test-race chaos chaos-sample histories api changes selftest mutate bench bench-rivals rivals bench-smoke release release-check agentdojo dependencies fuzz broken askers ci clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-13s %s\n", $$1, $$2}'

demo: fetch jig-dev ## review this module's dependencies, by an agent and by a graph of tasks; both ask before they write
	@scripts/say.sh "demo: PostgreSQL, Temporal, Web UI and worker"
	@$(BIN)/jig-dev demo $(ARGS)

dev: fetch jig-dev ## PostgreSQL, Temporal, Web UI and worker until Ctrl-C (ARGS="--fresh" clears the data)
	@$(BIN)/jig-dev $(ARGS)

build: ## build jig, a single static program, into bin/
	@scripts/say.sh "build: bin/jig, static (minutes with an empty build cache)"
	@CGO_ENABLED=0 GOFLAGS="$${GOFLAGS:-} -trimpath" scripts/build.sh $(CURDIR)/bin/jig cmd/jig

release: ## build the programs of a release for all platforms into dist/ (VERSION=0.1.0; PLATFORMS=linux/amd64 builds some)
	@GOFLAGS= scripts/tool.sh cyclonedx-gomod github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod $(CYCLONEDX)
	@scripts/release.sh $(VERSION) $(PLATFORMS)

release-check: ## unpack the release for this machine, and run the first steps of its README with nothing else
	@scripts/release-check.sh dist/$(VERSION)/jig_$(VERSION)_$$(go env GOOS)_$$(go env GOARCH).tar.gz

fetch:
	@scripts/fetch.sh

temporal-cli: ## build the stock temporal command into .cache/bin, unless it is on PATH (only tests need it; minutes)
	@command -v temporal >/dev/null || scripts/tool.sh temporal github.com/temporalio/cli/cmd/temporal $(TEMPORAL_CLI)

# The Temporal server is kept in the user's cache directory, see dev/internal/program. It is built at the same time as jig-dev, whose largest
# package keeps one core busy for minutes, but after jig, which compiles the packages that all of them share.
jig-dev: fetch
	@scripts/say.sh "build: jig, jig-dev and the Temporal server (minutes with an empty build cache, seconds afterwards)"
	@scripts/build.sh $(BIN)/jig cmd/jig
	@(cd dev && exec go run ./prepare) & server=$$!; built=0; \
	scripts/build.sh $(BIN)/jig-dev dev || built=$$?; wait $$server; exit $$built

lint: ## golangci-lint on all modules, workflowcheck on the workflows
	@scripts/tool.sh golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint $(GOLANGCI_LINT)
	@scripts/tool.sh workflowcheck go.temporal.io/sdk/contrib/tools/workflowcheck $(WORKFLOWCHECK)
	@scripts/say.sh "lint: golangci-lint"
	@golangci-lint run --allow-parallel-runners ./...
	@cd bench && golangci-lint run --allow-parallel-runners --config ../.golangci.yml ./...
	@cd dev && golangci-lint run --allow-parallel-runners --config ../.golangci.yml ./...
	@cd bench/agentsdk && GOWORK=off golangci-lint run --allow-parallel-runners --config ../../.golangci.yml ./...
	@cd dev/temporal && GOWORK=off golangci-lint run --allow-parallel-runners --config ../../.golangci.yml ./...
	@cd dev/alerts && GOWORK=off golangci-lint run --allow-parallel-runners --config ../../.golangci.yml ./...
	@cd dev/manifests && GOWORK=off golangci-lint run --allow-parallel-runners --config ../../.golangci.yml ./...
	@scripts/say.sh "lint: workflowcheck"
	@workflowcheck -config .workflowcheck.yaml ./workflows/...

test: fetch temporal-cli jig-dev ## all tests, against a real PostgreSQL and a real Temporal server
	@scripts/say.sh "test: the root module"
	@$(AROUND_TESTS) go test -timeout $(ROOT_TIMEOUT) ./...
	@scripts/say.sh "test: the bench module"
	@cd bench && $(AROUND_TESTS) go test ./...
	@scripts/say.sh "test: the module of the Temporal server"
	@cd dev/temporal && GOWORK=off go test ./...
	@scripts/say.sh "test: the module of the alert rules"
	@cd dev/alerts && GOWORK=off go test ./...
	@scripts/say.sh "test: the module of the Kubernetes manifests"
	@cd dev/manifests && GOWORK=off go test ./...
	@scripts/say.sh "test: the dev module (end to end)"
	@cd dev && JIG_CHAOS_SEED=$(CHAOS_SEED) go test $(E2E_FLAGS) ./...

test-race: fetch temporal-cli jig-dev ## all tests under the race detector
	@scripts/say.sh "test-race: the root module"
	@$(AROUND_TESTS) go test -race -timeout $(ROOT_TIMEOUT) ./...
	@scripts/say.sh "test-race: the bench module"
	@cd bench && $(AROUND_TESTS) go test -race ./...
	@scripts/say.sh "test-race: the dev module"
	@cd dev && go test -race $(E2E_FLAGS) ./...

chaos: fetch jig-dev ## kill workers and the database at random moments, the whole suites (long); CHAOS_SEED=n repeats a run
	@scripts/say.sh "chaos: the whole suites, seed $(CHAOS_SEED)"
	@$(AROUND_TESTS) go test -count=1 -timeout 60m ./workflows -run Races -race.seed $(CHAOS_SEED) -race.count 10000
	@cd dev && JIG_CHAOS=full JIG_CHAOS_SEED=$(CHAOS_SEED) go test -count=1 -timeout 120m -run Chaos ./...

chaos-sample: fetch jig-dev
	@scripts/say.sh "chaos: a sample of about five minutes, seed $(CHAOS_SEED)"
	@cd dev && JIG_CHAOS=sample JIG_CHAOS_SEED=$(CHAOS_SEED) go test -count=1 $(E2E_FLAGS) -run Chaos ./...

histories: fetch jig-dev ## record new workflow histories, then replay them
	@scripts/say.sh "histories: record into workflows/testdata"
	@cd dev && JIG_RECORD_HISTORIES=1 go test -count=1 $(E2E_FLAGS) -run Histories ./...
	@scripts/say.sh "histories: replay"
	@go test -count=1 -run Replay ./workflows/...

bench: fetch jig-dev rivals ## measure against the named baselines and write docs/benchmarks.md
	@scripts/say.sh "bench: about an hour"
	@$(AROUND_BENCH) go run ./bench --out docs/benchmarks.md -agent-sdk-go $(BIN)/agentsdk $(ARGS)

bench-rivals: fetch jig-dev rivals ## measure jig beside a bare loop and beside agent-sdk-go
	@scripts/say.sh "bench: P18, about half an hour"
	@$(AROUND_BENCH) go run ./bench --only p18,p18-answers,p18-wide -agent-sdk-go $(BIN)/agentsdk $(ARGS)

# agent-sdk-go has a module of its own, because it needs other versions of some modules.
rivals:
	@scripts/say.sh "build: the program that runs agent-sdk-go"
	@GOWORK=off scripts/build.sh $(BIN)/agentsdk bench/agentsdk

agentdojo: fetch jig-dev ## measure the data flow guard with AgentDojo; DATA=FOLDER holds the benchmark's data, see docs/data-flow.md
	@scripts/say.sh "agentdojo: five variants, about a minute each"
	@$(AROUND_TESTS) go run ./bench/agentdojo $(ARGS) $(DATA)

bench-smoke: fetch jig-dev rivals
	@scripts/say.sh "bench: a smoke run, nothing is written"
	@$(AROUND_BENCH) go run ./bench --smoke -agent-sdk-go $(BIN)/agentsdk

dependencies: ## write docs/dependencies.md from the imports of all modules
	@go test -count=1 -run DependenciesPage . -update

fuzz: ## run each fuzz target for FUZZTIME (default 10s)
	@scripts/fuzz.sh $(FUZZTIME)

broken: fetch temporal-cli jig-dev ## answers that providers break: 10,000 of each wire format, and 100 whole sessions
	@scripts/say.sh "broken: answers"
	@go test -count=1 -timeout 30m -run BrokenAnswers ./model -broken 10000
	@scripts/say.sh "broken: sessions"
	@cd dev && JIG_BROKEN_SESSIONS=50 go test -count=1 $(E2E_FLAGS) -run BrokenAnswers ./e2e

askers: fetch ## people who ask and decide in any order: 5,000 cases of the rules, and 300 with the engine and the database
	@scripts/say.sh "askers: the rules"
	@go test -count=1 -run NobodyBothAsks ./internal/approval
	@scripts/say.sh "askers: the engine"
	@$(AROUND_TESTS) go test -count=1 -timeout 30m -run Askers_Played -v ./activities -askers 300

api: ## check the OpenAPI document with Redocly, and the TypeScript client (ARGS=--update writes its types); needs npm
	@scripts/say.sh "api: the OpenAPI document and clients/typescript"
	@scripts/api.sh $(ARGS)

selftest: fetch jig-dev ## break requests of every operation of the HTTP API (200 each), and try to reach other tenants (10,000 requests)
	@scripts/say.sh "selftest: every operation of the HTTP API"
	@$(AROUND_TESTS) go test -count=1 -timeout 30m ./server -run 'Operations|Isolation' -api.requests 200 -api.isolation 10000

mutate: fetch jig-dev ## disable guards one by one and check that a test fails (MUTATE=word picks some)
	@$(AROUND_TESTS) scripts/mutate.sh $(MUTATE)

ci: export JIG_CHAOS := sample # makes `test` run the chaos sample, so that it does not run separately
changes: fetch jig-dev ## apply, build and test the example changes that CONTRIBUTING.md describes (scripts/changes)
	@scripts/say.sh "changes: build and test the examples"
	@$(AROUND_TESTS) scripts/changes.sh

ci: lint test api changes bench-smoke ## what continuous integration runs

clean: ## remove build output and local state (the tools in .cache stay)
	@scripts/say.sh "clean: bin, .jig and .cache/bin/jig-dev"
	@rm -rf bin .jig $(BIN)/jig-dev
