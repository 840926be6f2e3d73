SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PKG ?= ./...
FUZZTIME ?= 10s
CRASH_ROUNDS ?= 500
HISTORIES ?= 200
HA_ROUNDS ?= 3
# Parts of the bench, with commas between them: confirm, growth, storms, scaleout.
BENCH ?= confirm
ALLOCS := Key|Fingerprint|Executor|KeyHeader|Body|Handler
# The tools have a go.mod of their own, so that the service's lists only what it is built from.
TOOL := go tool -modfile=.tools/go.mod
VERSION = $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT = $(shell git rev-parse --verify --quiet HEAD 2>/dev/null || echo unknown)

.PHONY: help
help: ## List these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## Build and start the service (settings: bin/kakutei help)
	bin/kakutei serve

.PHONY: build
build: ## Build bin/kakutei
	go build -trimpath -ldflags '-X main.version=$(VERSION) -X main.commit=$(COMMIT)' -o bin/kakutei ./cmd/kakutei

# docs/operations/README.md says what is in it.
.PHONY: dist
dist: ## Build the release: static binaries for six platforms and their SHA256SUMS, into dist
	.ci/dist dist

# A cache of its own, so that nothing of the first is in the second; that takes minutes.
.PHONY: distcheck
distcheck: ## Build the release twice, and compare
	@rm -rf dist/once dist/again dist/cache
	.ci/dist dist/once
	GOCACHE=$(CURDIR)/dist/cache .ci/dist dist/again
	@rm -rf dist/cache
	diff -r dist/once dist/again

.PHONY: image
image: ## Build the container image and have it pay an order (Linux, as root: buildah)
	.ci/image

# docs/security.md says how to read it.
.PHONY: vuln
vuln: ## Look for known vulnerabilities in what the program calls
	.ci/vuln

# It needs git's history, to build the version before.
.PHONY: upgrade
upgrade: ## Run the version before (OLD=commit) beside this one while payments go on
	.ci/upgrade

.PHONY: check
check: vet lint layers test ## All that CI checks

.PHONY: test
test: compiler $(if $(filter ./...,$(PKG)),ts) ## Run the tests under the race detector, with a PostgreSQL server (PKG=./domain/... for a part)
	CGO_ENABLED=1 .ci/with-postgres go test -race -timeout 20m $(PKG)

TS := interfaces/client/ts
WEB := interfaces/web

.PHONY: ts
ts: build ## Check and test the browser client and the pages against bin/kakutei, in Node.js and in Chromium
	.ci/with-browser $(MAKE) --no-print-directory $(TS)/node_modules/.package-lock.json $(WEB)/node_modules/.package-lock.json
	.ci/with-browser npm --prefix $(TS) --silent test
	.ci/with-browser npm --prefix $(WEB) --silent test

%/node_modules/.package-lock.json: %/package-lock.json
	npm --prefix $* ci --no-progress
	touch $@

# They are committed: a build of the service needs neither this nor Node.js.
.PHONY: pages
pages: ## Build the pages' scripts from their sources
	go generate ./$(WEB)

.PHONY: lint
lint: ## Check format and style, as .golangci.yml says
	$(TOOL) golangci-lint run

.PHONY: vet
vet: ## Run go vet
	go vet ./...
	go vet -tags ha ./cmd/kakutei

.PHONY: layers
layers: ## Check who imports whom, and what lies in the top directory
	go test -count=1 -run 'Layer|ImportRule|StandsAlone|TopDirectory' ./cmd/kakutei

.PHONY: fmt
fmt: ## Format the code
	$(TOOL) gofumpt -l -w -modpath kakutei .

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (10s)
	@go test -list '^Fuzz' ./... | \
	  awk '/^Fuzz/ { target[n++] = $$1 } /^ok/ { for (i = 0; i < n; i++) print target[i], $$2; n = 0 }' | \
	  while read -r target package; do \
	    echo "== $$target in $$package"; \
	    go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$package" </dev/null; \
	  done

# Each test names its faults; docs/failure-modes.md lists them all.
.PHONY: crash
crash: ## Kill instances CRASH_ROUNDS (500) times on each store, and break the database beneath them
	CRASH_ROUNDS=$(CRASH_ROUNDS) .ci/with-postgres go test -count=1 -v -timeout 60m \
	  -run 'Kill|Dies|Sleeps|Stopped|ACommit|Stalls|UnderLoad|HeldFrom|Recovers|AFile|ADisk' ./cmd/kakutei

# docs/linearizability.md says what is checked.
.PHONY: linear
linear: compiler ## Check HISTORIES (200) histories of concurrent clients on each store
	HISTORIES=$(HISTORIES) CGO_ENABLED=1 .ci/with-postgres go test -race -count=1 -v -timeout 60m \
	  -run 'TestWhatConcurrentClients' ./interfaces/httpapi

# Not in CI: it takes minutes. docs/operations/high-availability.md says what it shows.
.PHONY: ha
ha: ## Kill the leader of a Patroni cluster HA_ROUNDS (3) times under load, and bring it back
	HA_ROUNDS=$(HA_ROUNDS) .ci/ha

# Not in CI: they take minutes, and a machine of their own. docs/performance.md says how to read them; they write it, too.
.PHONY: bench
bench: build bin/kakutei-bench ## Measure the service beside its database (BENCH=confirm,growth,storms,scaleout) into docs
	BENCH=$(BENCH) .ci/bench

.PHONY: bin/kakutei-bench
bin/kakutei-bench:
	go build -trimpath -o $@ ./cmd/kakutei-bench

.PHONY: allocs
allocs: bin/kakutei-bench ## Measure what a request allocates on its way, into docs
	go test -run '^$$' -bench '^Benchmark($(ALLOCS))$$' -benchmem -timeout 10m \
	  ./domain/idempotency ./application/idempotent ./interfaces/httpapi | bin/kakutei-bench allocs docs

.PHONY: cover
cover: ## Measure which statements the tests run, into coverage.out
	.ci/with-postgres go test -timeout 20m -coverpkg=./... -coverprofile=coverage.out $(PKG)
	go tool cover -func=coverage.out | tail -n 1

.PHONY: tidy
tidy: ## Make both go.mod files match the imports
	go mod tidy
	go -C .tools mod tidy

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin dist coverage.out $(TS)/dist $(TS)/node_modules $(WEB)/node_modules $(WEB)/screenshots

# The race detector is C code.
.PHONY: compiler
compiler:
	@command -v "$$(go env CC | cut -d ' ' -f 1)" >/dev/null || .ci/install gcc libc6-dev || \
	  { echo 'go test -race needs a C compiler (Debian: apt-get install gcc libc6-dev; macOS: xcode-select --install)' >&2; exit 1; }
