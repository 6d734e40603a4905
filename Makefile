# Slipway. `make` prints the targets.
SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help

# Use the same settings for every build and test, because a different setting would compile
# Kubernetes a second time. With -trimpath, a second clone finds all packages in Go's build cache.
export CGO_ENABLED := 0
export GOFLAGS     := -trimpath -buildvcs=false
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo v0.0.0-dev)
# The commit and its time in UTC, which /version shows. Two builds of one commit are identical.
COMMIT  := $(shell git rev-parse HEAD 2>/dev/null)
DATE    := $(shell TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ 2>/dev/null)
# kubectl and the API server parse the Kubernetes version that they were built from.
KUBE    := $(shell awk '$$1 == "k8s.io/kubernetes" {print $$2}' go.mod)
KUBEVER := $(subst ., ,$(patsubst v%,%,$(KUBE)))
X       := -X k8s.io/component-base/version
LDFLAGS := -s -w -X github.com/slipway-platform/slipway/internal/version.slipway=$(VERSION) \
	$(X).gitVersion=$(KUBE) $(X).gitMajor=$(word 1,$(KUBEVER)) $(X).gitMinor=$(word 2,$(KUBEVER)) \
	$(X).gitCommit=$(COMMIT) $(X).gitTreeState=$(if $(findstring -dirty,$(VERSION)),dirty,clean) $(X).buildDate=$(or $(DATE),1970-01-01T00:00:00Z)

.PHONY: help up down build setup payload console sbom docs oc-all test check checked unit scenario arm64 s3 netpol samples bench bench-compare churn soak faults lint golangci shape coverage clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: build ## install missing packages, build, start a cluster on this machine, print the next steps
	bin/slipway up --link
	@echo '  oc apply -f examples/flexvolume/   # an application that keeps its page on a FlexVolume'

down: ## stop the cluster (make down PURGE=1 removes its data too)
	bin/slipway down $(if $(PURGE),--purge)

setup: ## install the distribution's packages that building and running need
	@GO='$(GO)' hack/setup.sh

payload: setup ## build the small programs that are embedded: containerd, its shim, runc, CNI plugin, pause, builder
	$(GO) run ./hack/payload $(if $(ARCH),-arch $(ARCH))

console: setup ## build the web console, which is embedded in slipway
	$(GO) run ./hack/console

build: payload console ## build bin/slipway and bin/oc; ARCH=arm64 builds them for another machine
	$(if $(ARCH),GOARCH=$(ARCH)) $(GO) build -ldflags '$(LDFLAGS)' -o bin/slipway ./cmd/slipway
	$(if $(ARCH),GOARCH=$(ARCH)) $(GO) build -ldflags '$(LDFLAGS)' -o bin/oc ./cmd/oc

sbom: build ## write bin/slipway.cdx.json: the components of the programs, in CycloneDX format
	$(GO) run ./hack/dependencies --sbom bin/slipway.cdx.json --version '$(VERSION)'

docs: setup ## write the documentation site to bin/site
	$(GO) run ./hack/docs
	mkdocs build --strict --quiet

oc-all: ## build the client for linux, darwin and windows
	@for os in linux darwin windows; do \
		echo "bin/oc-$$os-amd64"; \
		GOOS=$$os GOARCH=amd64 $(GO) build -ldflags '$(LDFLAGS)' -o bin/oc-$$os-amd64 ./cmd/oc || exit 1; \
	done

# Run the tests with an S3 server at the same time as the scenarios.
test: SUITES = ./test/s3 ./test/scenario/...
test: build sbom lint unit oc-all scenario ## run everything and print the time by package; needs root
	@$(GO) run ./hack/gotest -report bin/times

check: ## build, lint and test what a change can break (BASE=main); it boots no cluster
	@start=$$SECONDS && $(MAKE) --no-print-directory checked && mkdir -p bin/times && \
	echo $$((SECONDS - start)) >bin/times/check && echo "make check took $$(cat bin/times/check) s"

checked: build
	@changed=$$($(GO) run ./hack/affected -base $(or $(BASE),main) -changed | tr '\n' ' ') && \
	packages=$$($(GO) run ./hack/affected -base $(or $(BASE),main)) && \
	if test -z "$$packages"; then echo 'no package has changed'; exit; fi && \
	$(MAKE) --no-print-directory lint golangci PACKAGES="$$changed" && \
	$(GO) test $$packages

# If at most five tests fail, gotest runs each of them again. The report of `make test` lists the
# tests that then pass.
RERUN = -rerun 5
# Tests do not vet, because lint vets all packages. Without debug information, the test programs
# link faster.
TESTFLAGS = -vet=off -ldflags='-s -w'

unit: build ## run the tests next to the code
	$(GO) run ./hack/gotest -record bin/times/unit.json $(RERUN) -- $(TESTFLAGS) $$($(GO) list ./... | grep -v -e /test/scenario/ -e /test/s3 -e /test/faults -e /test/measure -e /test/netpol)
	npm --prefix console/web --silent test

SUITES = ./test/scenario/...

# Three packages run at the same time, because scenarios mostly wait. JOBS=1 runs one package at a
# time. Each cluster has its own network namespace, data directory and cgroup. With RUN, only the
# packages that contain the test are compiled.
SCENARIOS = $(if $(RUN),$$(grep -rlwE 'func ($(RUN))' test/scenario | xargs -r -n1 dirname | sort -u | sed 's|^|./|'),./test/scenario/...)

scenario: build ## run the scenarios on real clusters; RUN=TestName runs one, KEEP=1 keeps its cluster
ifdef RUN
	@test -n "$(SCENARIOS)" || { echo 'no scenario has a test $(RUN)'; exit 1; }
	$(if $(KEEP),SLIPWAY_TEST_KEEP=1) $(GO) test -v -count=1 -timeout 40m -run '^($(RUN))$$' $(SCENARIOS)
else
	$(if $(KEEP),@echo 'KEEP=1 needs RUN=TestName'; exit 1)
	$(GO) run ./hack/gotest -record bin/times/scenario.json $(RERUN) -- $(TESTFLAGS) -count=1 -p $(or $(JOBS),3) -timeout 40m $(SUITES)
endif

# ARM64_PROGRAMS contains this repository's small embedded programs. ARM64_TESTS contains packages
# whose tests start no programs for the other architecture and are fast enough in an emulator. One
# of their tests requires a kernel for amd64, so it is skipped.
ARM64_PROGRAMS := ./cmd/pause ./cmd/slipway-supervisor ./cmd/slipway-cni ./cmd/slipway-egress-router
ARM64_TESTS    := ./supervisor/component ./internal/cgroup ./internal/jsonlimit ./internal/yamllimit ./internal/throttle \
	./internal/unixsocket ./config

arm64: ## compile the small programs for arm64, and run tests of portable packages with qemu-user-static
	@command -v qemu-aarch64-static >/dev/null || { echo 'qemu-aarch64-static is missing; run: apt-get install qemu-user-static'; exit 1; }
	GOARCH=arm64 $(GO) build -o bin/arm64/ $(ARM64_PROGRAMS)
	GOARCH=arm64 $(GO) test -exec qemu-aarch64-static -skip TestGroupsOfVersion2 $(ARM64_TESTS)

s3: build ## run the registry with a real server of S3, which is built first
	$(GO) run ./hack/gotest -record bin/times/s3.json $(RERUN) -- $(TESTFLAGS) -count=1 -timeout 20m ./test/s3

netpol: build ## run Kubernetes' own tests of network policies; FOCUS=expression selects some
	$(GO) test -v -count=1 -timeout 0 ./test/netpol $(if $(FOCUS),-args -focus '$(FOCUS)')

samples: build ## build all images of the catalog that have tests, and run them
	SLIPWAY_TEST_SAMPLES=all $(GO) test -v -count=1 -timeout 90m -run 'TestDatabaseOfSample|TestBuilder' ./test/scenario/application
	SLIPWAY_TEST_SAMPLES=all $(GO) test -v -count=1 -timeout 20m -run 'TestPipelineUsesSSH|TestPipelineRunsMaven' ./test/scenario/build

bench: build ## measure against the same upstream programs run separately, then several hosts and many nodes
	$(GO) run ./test/bench -markdown docs/benchmark.md
	$(GO) test -v -count=1 -timeout 0 -skip TestMemoryUnderChurn ./test/measure -args -markdown $(CURDIR)/docs/benchmark-hosts.md
	$(GO) run ./hack/benchmarks

bench-compare: build ## measure this build of slipway and another one in turns; BASE=program names the other
	@test -n "$(BASE)" || { echo 'BASE is missing; run: make bench-compare BASE=PROGRAM, with a slipway program of another commit'; exit 1; }
	$(GO) run ./test/bench -base $(BASE) -rounds $(or $(ROUNDS),5)

churn: build ## measure the growth of memory while projects are created and deleted for HOURS=1
	$(GO) test -v -count=1 -timeout 0 -run TestMemoryUnderChurn ./test/measure -args -churn $(or $(HOURS),1)h -markdown $(CURDIR)/docs/benchmark-hosts.md
	$(GO) run ./hack/benchmarks

soak: faults ## fuzz the parsers of untrusted input for an hour, or HOURS=n, after make faults (docs/soak.md)
	$(GO) test -count=1 -timeout 30m -run '^TestFaultSchedules$$' ./apigroup/servicecatalog/catalogcontroller -args -schedules 500
	$(GO) run ./hack/soak -time $(or $(HOURS),1)h -markdown

faults: build ## let the hosts of a cluster fail at random for MINUTES=10, with SEED=1 (docs/soak.md)
	$(GO) test -v -count=1 -timeout 0 ./test/faults -args -seed $(or $(SEED),1) -for $(or $(MINUTES),10)m

PACKAGES ?= ./...

lint: setup ## gofmt, go vet, shellcheck
	@unformatted=$$(gofmt -l .) && test -z "$$unformatted" || { echo "$$unformatted"; echo 'these files are not formatted; run: gofmt -w .'; exit 1; }
	$(GO) vet $(PACKAGES)
	shellcheck $$(git ls-files -co --exclude-standard '*.sh') .ci/run examples/flexvolume/driver/loop

LINTER := bin/golangci-lint

# Run the linters by folder and with a memory limit, so that they need less than 7 GiB of memory.
LINTED = $(if $(filter ./...,$(PACKAGES)),$$(git ls-files '*.go' | sed 's|/.*||' | sort -u | sed 's|.*|./&/...|'),'$(PACKAGES)')

golangci: $(LINTER) ## the linters of .golangci.yml, on all packages or on PACKAGES
	@status=0; for packages in $(LINTED); do \
		echo "golangci-lint run $$packages"; \
		GOMEMLIMIT=7GiB $(LINTER) run --allow-parallel-runners --concurrency 2 $$packages || status=1; \
	done; exit $$status

$(LINTER): hack/tools/go.mod hack/tools/go.sum
	$(GO) build -C hack/tools -o ../../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

shape: ## print the sizes of packages, files and functions, tests by folder, repetitions, exemptions
	@$(GO) run ./hack/shape
	@$(GO) test -count=1 -v -run TestExemptionsExist ./internal/repocheck | sed -n 's/^ *[a-z_]*.go:[0-9]*: //p'

coverage: ## print which rows of the specification work
	@$(GO) run ./hack/coverage

clean: ## remove built files
	rm -rf bin internal/payload/files/*.zst console/web/build console/web/node_modules
	find console/dist -mindepth 1 ! -name README ! -name .gitignore -delete
