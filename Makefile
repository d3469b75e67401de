# Everything there is to do here. `make test` is what CI runs, on a machine that has nothing but Debian and Rust.

CARGO ?= cargo
TARGET := target/x86_64-unknown-linux-gnu
HOSTILE := $(wildcard tests/hostile/*.c)
PACKAGES := gcc g++ junit4 curl python3-venv libc6-dev python3 qemu-system-x86 mmdebstrap e2fsprogs busybox-static mount runc crun runsc docker.io podman systemd
# Toolchains, by the program: any way of having it is good.
TOOLCHAINS := go:golang-go node:nodejs npm:npm javac:default-jdk-headless
# Shared by all clones: building it takes minutes.
TOOLS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/hotcell/tools

.PHONY: build test deps prepare lint deny unit test-root test-user test-programs test-backends test-engines conformance image clients test-vm endurance fuzz-api bench clean

build:
	$(CARGO) build --release

# Installs what the tests need and runs all of them.
test: deps prepare unit test-root test-user test-programs test-backends test-engines test-vm

# At once, since each waits for the network or for one processor most of its time.
prepare: deps
	@$(MAKE) --no-print-directory --output-sync -j4 lint deny image clients

# Only what is missing is installed, so that a machine that has everything needs no network and no root.
deps:
	@missing=; for p in $(PACKAGES); do dpkg -s $$p >/dev/null 2>&1 || missing="$$missing $$p"; done; \
	for t in $(TOOLCHAINS); do command -v $${t%%:*} >/dev/null 2>&1 || missing="$$missing $${t##*:}"; done; \
	if [ -n "$$missing" ]; then apt-get update -qq && apt-get install -y -qq --no-install-recommends $$missing; fi

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --all-targets --quiet -- -D warnings

$(TOOLS)/bin/cargo-deny:
	CARGO_BUILD_TARGET= CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off \
	$(CARGO) install --quiet --locked --root $(TOOLS) cargo-deny@0.20.2

# Licences, duplicates and sources; advisories where their database can be fetched.
deny: $(TOOLS)/bin/cargo-deny
	$(TOOLS)/bin/cargo-deny --all-features check --hide-inclusion-graph licenses bans sources
	@timeout 60 $(TOOLS)/bin/cargo-deny check advisories || echo "advisories: the database is out of reach, not checked"

# The VM's disk: made once.
image:
	@tests/vm/image >/dev/null

# What others wrote to test a service, or to call one: installed once.
clients:
	@tests/clients/python openapi >/dev/null
	@tests/clients/python mcp >/dev/null

unit:
	$(CARGO) test --quiet --workspace --lib --bins
	$(CARGO) test --quiet -p hotcell-sandbox --tests

target/hostile/hostile: $(HOSTILE) tests/hostile/hostile.h
	@mkdir -p target/hostile
	$(CC) -O1 -Wall -Wextra -static -o $@ $(HOSTILE)

# The same tests as whoever runs this, and with every cell started by an ordinary user.
test-root: target/hostile/hostile
	$(CARGO) test --quiet -p hotcell-cli --test cell

# An ordinary user may not be able to reach this directory: the binaries are copied to where anybody can.
test-user: target/hostile/hostile
	@$(CARGO) build --quiet
	@dir=$$(mktemp -d) && chmod 755 $$dir && mkdir $$dir/src && \
	cp $(TARGET)/debug/hotcell $$dir/ && cp target/hostile/hostile $$dir/src/ && \
	HOTCELL_TEST_AS=user HOTCELL_BIN=$$dir/hotcell HOTCELL_HOSTILE=$$dir/src/hostile \
	$(CARGO) test --quiet -p hotcell-cli --test cell; status=$$?; rm -rf $$dir; exit $$status

# A hundred programs in eight languages, by whoever runs this and by an ordinary user.
test-programs:
	$(CARGO) test --quiet -p hotcell-cli --test programs --test capsule --test languages --test verify --test state --test receipt --test events --test grants --test serve -- --test-threads=3
	HOTCELL_TEST_AS=user $(CARGO) test --quiet -p hotcell-cli --test programs

# What a cell must hold, with every cell made by a container runtime: runc as whoever runs this, crun by an ordinary user. All of
# them: `HOTCELL_TEST_RUNTIME=runc cargo test -p hotcell-cli --test cell`.
HELD := limits:: verdicts:: escape:: ends:: containers:: images::
test-backends: target/hostile/hostile
	@$(CARGO) build --quiet
	HOTCELL_TEST_RUNTIME=runc $(CARGO) test --quiet -p hotcell-cli --test cell -- $(HELD) output:: witness::
	@dir=$$(mktemp -d) && chmod 755 $$dir && mkdir $$dir/src && \
	cp $(TARGET)/debug/hotcell $$dir/ && cp target/hostile/hostile $$dir/src/ && \
	HOTCELL_TEST_RUNTIME=crun HOTCELL_TEST_AS=user HOTCELL_BIN=$$dir/hotcell HOTCELL_HOSTILE=$$dir/src/hostile \
	$(CARGO) test --quiet -p hotcell-cli --test cell -- $(HELD); status=$$?; rm -rf $$dir; exit $$status
	HOTCELL_BIN=$$PWD/$(TARGET)/debug/hotcell tests/conformance --check

# The same tests with an engine's containers: what only engines can do wrong, and what a cell must hold, by engines that are
# started for it. All of them: `HOTCELL_TEST_RUNTIME=docker tests/engine docker cargo test -p hotcell-cli --test cell`.
test-engines: target/hostile/hostile
	@$(CARGO) build --quiet
	@for engine in docker podman; do \
		export HOTCELL_BIN=$$PWD/$(TARGET)/debug/hotcell; \
		tests/engine $$engine sh -ec "$(CARGO) test --quiet -p hotcell-cli --test cell engines::; \
		tests/conformance --check --only $$engine" || exit 1; \
	done
	HOTCELL_TEST_RUNTIME=docker tests/engine docker $(CARGO) test --quiet -p hotcell-cli --test cell -- verdicts:: escape::

# What each backend of this host proves, into docs/backends.md.
conformance: target/hostile/hostile
	@$(CARGO) build --quiet --release
	tests/conformance
	for engine in docker podman; do tests/engine $$engine tests/conformance --only $$engine || exit 1; done

# And on another kernel with cgroup v2: what groups decide, and the ends, as root; what groups decide as a user with a delegated
# subtree; what the kernel decides as a user without.
test-vm: target/hostile/hostile
	@rm -rf target/vm/files && mkdir -p target/vm/files
	@$(CARGO) build --quiet
	@cp $(TARGET)/debug/hotcell target/hostile/hostile target/vm/files/
	@cp "$$($(CARGO) test --no-run -p hotcell-cli --test cell 2>&1 | sed -n 's/^ *Executable .*(\(.*\))$$/\1/p')" target/vm/files/cell
	MODES=root VM_TIMEOUT=$${VM_TIMEOUT:-1500} tests/vm/run target/vm/files -- --test-threads=3 limits:: verdicts:: ends::killed ends::hotcell ends::the_launcher
	MODES=delegated VM_TIMEOUT=$${VM_TIMEOUT:-900} tests/vm/run target/vm/files -- --test-threads=3 limits::a_ limits::as_ limits::memory limits::cpu
	MODES=user VM_TIMEOUT=$${VM_TIMEOUT:-900} tests/vm/run target/vm/files -- --test-threads=3 escape:: writes:: witness::

# The service against its own document, with requests that a tester makes up: `FOR=600 make fuzz-api`.
fuzz-api:
	HOTCELL_FUZZ_SECONDS=$${FOR:-300} $(CARGO) test -p hotcell-cli --test serve document::every_answer -- --nocapture

# Ten thousand runs in a row, three hundred cells at once: nothing grows, nothing is left.
endurance:
	HOTCELL_RUNS=10000 $(CARGO) test --release -p hotcell-sandbox --test endurance

# Side by side with peers, as ratios, into docs/benchmarks.md.
bench: build
	@which bwrap wrk >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq bubblewrap wrk; }
	$(CARGO) build --release --quiet --examples -p hotcell-sandbox -p hotcell-engine
	bench/run

clean:
	$(CARGO) clean
