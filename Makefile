# phux-agent. `make demo` and `make test` are the two commands of the README.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS  = -s -w -X main.version=$(VERSION)
PREFIX  ?= /usr/local

.PHONY: build demo test lint race e2e e2e-all bench fuzz install clean

build: bin/phux-agent

bin/phux-agent: FORCE
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./cmd/phux-agent

.PHONY: FORCE
FORCE:

# Sets up (tmux, where it is missing) and runs the main job on a private tmux server: launch,
# save, power cut, restore. Touches nothing outside a temporary directory.
demo: build
	@scripts/need-tmux
	@scripts/demo

# Everything that CI runs.
test: lint race

lint:
	@scripts/need-tmux
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	@out="$$($(GO) tool gofumpt -l .)"; if [ -n "$$out" ]; then echo "gofumpt wants to change:"; echo "$$out"; exit 1; fi
	GOOS=darwin $(GO) vet ./...
	$(GO) vet -tags e2e ./e2e
	$(GO) tool staticcheck -tags e2e ./e2e

race:
	$(GO) test -race -timeout 40m ./...

# The real agents, from the npm registry (exact versions in e2e/clis.txt, kept in PHUX_E2E_CLIS or
# ~/.cache/phux-agent-e2e), against a model server on loopback, in a real tmux. One at a time, for
# they are large. An agent that cannot be installed is said, counted, and not proven.
E2E ?= Claude|Codex|Gemini|Mixed$$|Headless|Transcripts
e2e:
	@scripts/need-tmux
	$(GO) test -tags e2e -count=1 -v -timeout 30m -run '^TestReal($(E2E))' ./e2e

e2e-all:
	@scripts/need-tmux
	$(GO) test -tags e2e -count=1 -v -timeout 90m ./e2e

# Side by side in one run, without the race detector; numbers, never assertions. BENCH chooses:
# make bench BENCH='Save|Launch'.
BENCH ?= .
bench: build
	@scripts/need-tmux
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime 1x -timeout 40m .

FUZZTIME ?= 20s
fuzz:
	@scripts/fuzz $(FUZZTIME)

install: build
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 0755 bin/phux-agent $(DESTDIR)$(PREFIX)/bin/phux-agent

clean:
	rm -rf bin
