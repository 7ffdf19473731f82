# phux-agent. `make demo` and `make test` are the two commands of the README.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS  = -s -w -X main.version=$(VERSION)
PREFIX  ?= /usr/local

.PHONY: build demo demo-embedded test lint cross race e2e e2e-all bench soak fuzz dist install uninstall clean

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

# The same without tmux, on phux-agent's own host.
demo-embedded: build
	@scripts/demo embedded

# Everything that CI runs.
test: lint cross race

lint:
	@scripts/need-tmux
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	@out="$$($(GO) tool gofumpt -l .)"; if [ -n "$$out" ]; then echo "gofumpt wants to change:"; echo "$$out"; exit 1; fi
	GOOS=darwin $(GO) vet ./...
	$(GO) vet -tags e2e ./e2e
	$(GO) tool staticcheck -tags e2e ./e2e

# What we are built for, and not run on here: compiled, so that it stays so.
cross:
	@for t in linux/arm64 darwin/amd64 darwin/arm64; do \
		echo "compile for $$t"; \
		CGO_ENABLED=0 GOOS=$${t%/*} GOARCH=$${t#*/} $(GO) build -trimpath -o /dev/null ./cmd/phux-agent || exit 1; \
	done

race:
	$(GO) test -race -timeout 40m ./...

# The real agents, from the npm registry (exact versions in e2e/clis.txt, kept in PHUX_E2E_CLIS or
# ~/.cache/phux-agent-e2e), against a model server on loopback, in a real tmux. One test at a time,
# for they are large; E2E_PARALLEL=2 runs two. An agent that cannot be installed is said, counted, and
# not proven.
E2E_PARALLEL ?= 1
E2E ?= Claude|Codex|Gemini|Mixed$$|Transcripts
e2e:
	@scripts/need-tmux
	$(GO) test -tags e2e -count=1 -v -timeout 60m -parallel $(E2E_PARALLEL) -run '^TestReal($(E2E))' ./e2e

# What CI runs of them: the main job of claude, codex and gemini, against what the registry gives in
# four minutes. An agent that it does not give is said, loudly, and is no failure; one that misbehaves
# twice is: they are large programs of others, and a first start may meet a machine that is busy.
.PHONY: e2e-ci
E2E_CI = PHUX_E2E_INSTALL=no $(GO) test -tags e2e -count=1 -v -timeout 15m -parallel 1 -run '^TestReal(Claude|Codex|Gemini)$$' ./e2e
e2e-ci:
	@scripts/need-tmux
	@timeout 240 scripts/e2e-install claude codex gemini || echo "e2e: NOT EVERY AGENT IS INSTALLED, see above"
	$(E2E_CI) || { echo "e2e: FAILED ONCE, see above; once more"; $(E2E_CI); }

e2e-all:
	@scripts/need-tmux
	$(GO) test -tags e2e -count=1 -v -timeout 90m -parallel $(E2E_PARALLEL) ./e2e

# How often a pane comes back as itself, counted: stand-ins of eight agents, generations, faults. The
# real ones are counted by e2e, at its end.
GENERATIONS ?= 3
.PHONY: exact
exact:
	@scripts/need-tmux
	$(GO) test -count=1 -v -timeout 40m -run '^TestExactRate$$' . -generations $(GENERATIONS)

# Side by side in one run, without the race detector; numbers, never assertions. BENCH chooses:
# make bench BENCH='Save|Launch'.
BENCH ?= .
bench: build
	@scripts/need-tmux
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime 1x -timeout 40m .

# A week in some minutes: random launches, moves, exits, saves, power cuts, full disks, slow shutdowns,
# clocks that jump by years, restores, with autosave on,
# compared with a model after each of a thousand steps. Another seed: PHUX_SOAK_SEED=2 make soak.
soak:
	@scripts/need-tmux
	PHUX_SOAK=$${PHUX_SOAK:-1000} $(GO) test -count=1 -v -timeout 60m -run '^TestSoak$$' .

FUZZTIME ?= 20s
fuzz:
	@scripts/fuzz $(FUZZTIME)

# Release archives of every system, and their digests: the same bytes for the same commit.
dist:
	scripts/dist $(VERSION)

install: build
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	install -m 0755 bin/phux-agent $(DESTDIR)$(PREFIX)/bin/phux-agent
	bin/phux-agent man >$(DESTDIR)$(PREFIX)/share/man/man1/phux-agent.1
	bin/phux-agent completion bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/phux-agent
	bin/phux-agent completion zsh >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_phux-agent
	bin/phux-agent completion fish >$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/phux-agent.fish

# First phux-agent uninstall, which takes out what it wrote elsewhere; then its own files.
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/phux-agent $(DESTDIR)$(PREFIX)/share/man/man1/phux-agent.1 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/phux-agent $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_phux-agent \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/phux-agent.fish

clean:
	rm -rf bin dist
