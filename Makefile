# SPDX-License-Identifier: MIT
# Targets only; the work is done in tools/, core/Makefile, cargo and pytest. `make help` lists them.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
export PIP_DISABLE_PIP_VERSION_CHECK := 1

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WHEELHOUSE := build/wheelhouse
DEMO := demo

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed 's/:.*## /\t/' | expand -t 16

# KERNEL=no leaves out whatever needs the lab's kernel.
KERNEL ?= yes
WITH_KERNEL := $(filter yes,$(KERNEL))

# Whatever is missing is reported here, before anything is built.
.PHONY: setup
setup: ## install what building and running needs (Debian packages, .venv)
	@tools/setup.sh build record
	@$(MAKE) $(VENV)/build

.PHONY: setup-test
setup-test: ## also what tests need
	@tools/setup.sh build record test $(if $(WITH_KERNEL),lab-source lab-build lab-run check)
	@$(MAKE) $(addprefix $(VENV)/,build dev docs fuzz) $(WHEELHOUSE)/ready
	@cargo fetch --quiet --locked
	@cargo fetch --quiet --locked --manifest-path crates/capture/fuzz/Cargo.toml

.PHONY: setup-lint
setup-lint: ## also what lints need
	@tools/setup.sh build record lint
	@$(MAKE) $(addprefix $(VENV)/,dev types)

.PHONY: setup-bench
setup-bench: ## also what ackwise is measured against
	@tools/setup.sh bench || echo "bench: measures without what is missing"

# What building and running, linting and testing, the site, fuzzing, and the check of public types need: an extra of
# pyproject.toml each.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(addprefix $(VENV)/,build dev docs fuzz types): $(VENV)/%: pyproject.toml requirements.lock | $(BIN)/python
	$(BIN)/python tools/pins.py $* > $(VENV)/pins-$*.txt
	@echo "installing $$(grep -c == $(VENV)/pins-$*.txt) Python packages into $(VENV)"
	$(BIN)/pip install -q --require-hashes --no-deps -r $(VENV)/pins-$*.txt
	touch $@

# Fetched once, so that the test of the wheel needs no network.
$(WHEELHOUSE)/ready: pyproject.toml requirements.lock | $(BIN)/python
	mkdir -p $(WHEELHOUSE)
	$(BIN)/python tools/pins.py > $(WHEELHOUSE)/pins.txt
	$(BIN)/pip download -q --require-hashes --no-deps -d $(WHEELHOUSE) -r $(WHEELHOUSE)/pins.txt
	touch $@

# What a policy in a C file is compiled with and checked by; bpf: for a kernel.
BUNDLED := python/ackwise/core
# What the lab's kernel is made of: a wheel has no linux/.
LAB_SOURCES := python/ackwise/lab/sources
.PHONY: build
build: setup ## compile the engine, install ackwise and its experiments into .venv (editable)
	@core/policies --write
	@if command -v clang >/dev/null; then $(MAKE) -s -C linux/bpf shipped; \
		else echo 'without clang, no BPF programs: `ackwise live` does without, `ackwise run` and `try` with less'; fi
	@rm -rf $(BUNDLED) && mkdir -p $(BUNDLED) && cd core && cp --parents -t ../$(BUNDLED) include/ackwise/* \
		policy.c reason.c policy/registry.c rivals/registry.c rivals/rivals.h host/*.c \
		test/prop_orders.c test/listed.h test/model.h test/test.h
	@mkdir $(BUNDLED)/bpf && cp linux/bpf/policy.bpf.h linux/bpf/qdisc/hold.bpf.h $(BUNDLED)/bpf
	@rm -rf $(LAB_SOURCES) && mkdir -p $(LAB_SOURCES) && cp -r --parents -t $(LAB_SOURCES) linux/series linux/config \
		linux/lab linux/patches/6.12 linux/patches/lab core/policies core/policy core/rivals core/*.c core/include
	+@VIRTUAL_ENV=$(abspath $(VENV)) PIP_QUIET=1 $(BIN)/maturin develop --release --quiet
	@$(BIN)/pip install -q --no-deps --no-build-isolation --no-index -e experiments
	@$(BIN)/python tools/classes.py --write
	@echo 'ackwise is built; so that this shell finds it: export PATH=$(abspath $(BIN)):$$PATH'

.PHONY: lock
lock: $(VENV)/dev ## the newest allowed versions of all requirements, into requirements.lock
	@$(BIN)/python tools/pins.py --lock

.PHONY: demo
demo: build ## compare policies on shipped links and on a real capture; HTML reports in demo/
	@tools/demo.sh $(BIN)/ackwise $(DEMO)

.PHONY: kernel kernel-stock kernel-patched kernel-series
kernel: kernel-patched kernel-series ## build the lab's kernels and check that the patch series applies

kernel-stock: setup-test build
	$(BIN)/ackwise lab build --stock

# Both need the source, the first its objects too.
kernel-patched: kernel-stock
	$(BIN)/ackwise lab build

kernel-series: kernel-stock
	UNLESS_PASSED=1 linux/check apply style

CORES := $(shell nproc)
PARALLEL := -j$(CORES) --output-sync=target

# Kernels, compiled tests and fuzzing take turns on the cores. Then tests of this host's clock and network run one
# at a time, and all others take what those leave of the cores.
.PHONY: test
test: setup-test ## every test; KERNEL=no leaves the real kernel out
	UNLESS_PASSED=1 $(MAKE) -j3 --output-sync=line $(if $(WITH_KERNEL),kernel) test-compiled fuzz
	nice $(BIN)/pytest -q -p no:cacheprovider -m "not host" -n $(CORES) --dist loadfile & others=$$!; \
		$(BIN)/pytest -q -m host || failed=yes; \
		wait $$others && test -z "$${failed:-}"

.PHONY: test-compiled test-core test-crates test-wheel
test-compiled: test-core test-crates test-wheel

test-core: setup-test
	@core/policies --write
	$(MAKE) -s $(PARALLEL) -C core test mutants asan cross size

test-crates: setup-test
	+cargo test --profile checked --workspace --no-default-features --quiet

test-wheel: setup-test wheel man
	tools/check_wheel.sh dist/ackwise-*.whl $(WHEELHOUSE) build/man

# Each target runs for FUZZ_SECONDS, FUZZ_JOBS at a time; seeds are the same every time. `make evidence` runs
# each for ten minutes.
FUZZ_SECONDS ?= 20
FUZZ_JOBS ?= 2
ifeq ($(origin FUZZ_SECONDS),file)
fuzz-commands: FUZZ_SECONDS = 60
endif
FUZZ_CAPTURES := fuzz-read fuzz-replay fuzz-diagnose
FUZZ_PYTHON := $(addprefix fuzz-,queues changes state sockets live claims claims-came guest-results)
FUZZ_ALL := fuzz-core fuzz-guest fuzz-commands $(FUZZ_CAPTURES) $(FUZZ_PYTHON)
fuzz-core: FUZZ_FOLDER := core
fuzz-guest: FUZZ_FOLDER := linux/fuzz
fuzz-commands: FUZZ_FOLDER := python/fuzz
fuzz-core fuzz-guest fuzz-commands: FUZZ_GROUP = $@
$(FUZZ_CAPTURES): FUZZ_FOLDER := crates/capture
$(FUZZ_CAPTURES): FUZZ_GROUP := fuzz-captures
$(FUZZ_PYTHON): FUZZ_FOLDER := python/fuzz
$(FUZZ_PYTHON): FUZZ_GROUP := fuzz-python

.PHONY: fuzz fuzz-captures fuzz-python $(FUZZ_ALL)
fuzz: setup-test build ## fuzz what reads bytes of strangers; FUZZ_SECONDS=N for each target
	$(MAKE) -s -j$(FUZZ_JOBS) --output-sync=target $(FUZZ_ALL)

.PHONY: fuzz-deep
fuzz-deep: setup-test build ## run whole commands on mutated files for 20 minutes
	$(MAKE) -s fuzz-commands FUZZ_SECONDS=1200

fuzz-captures: $(FUZZ_CAPTURES)
fuzz-python: $(FUZZ_PYTHON)

$(FUZZ_ALL):
	@$(BIN)/python tools/fuzzed.py $(FUZZ_GROUP) $@ $(FUZZ_SECONDS) $(MAKE) -s -C $(FUZZ_FOLDER) $(or $(filter fuzz-commands $(FUZZ_CAPTURES) $(FUZZ_PYTHON),$@),fuzz) \
		PYTHON=$(CURDIR)/$(BIN)/python FUZZ_SECONDS=$(FUZZ_SECONDS)

# Without a variable: every item with the age of its record.
.PHONY: evidence
evidence: build $(VENV)/dev ## run experiments and long checks again: ONLY="NAME...", or the oldest, MINUTES=30
	$(BIN)/python tools/evidence.py $(if $(CHANGED),--changed $(CHANGED)) \
		$(if $(MINUTES),--minutes $(MINUTES)) $(ONLY)

.PHONY: audit
audit: build ## verdicts that flip with other seeds, lengths and sizes; NAME=EXPERIMENT or linux-EXPERIMENT
	$(BIN)/python tools/audit.py --write $(NAME)

.PHONY: lint
lint: setup-lint build ## formatting, warnings, types, licences, generated docs
	$(MAKE) -s -C core lint
	cargo fmt --all --check
	if cargo clippy --version >/dev/null 2>&1; then \
		cargo clippy --release --workspace --all-targets --quiet -- -D warnings; \
	else \
		echo "clippy is not packaged for this toolchain: not run"; \
	fi
	$(MAKE) -s package-crates
	$(BIN)/ruff check --quiet python experiments tools bench
	$(BIN)/ruff format --quiet --check python experiments tools bench
	$(BIN)/mypy
	$(BIN)/basedpyright
	$(BIN)/lint-imports > build/imports.txt || { cat build/imports.txt; false; }
	$(BIN)/python tools/claims.py --check
	$(BIN)/python tools/spdx.py
	$(BIN)/python tools/generated_docs.py --check
	$(BIN)/python tools/classes.py --check
	$(BIN)/python tools/openwrt.py --check

# Each is built from its package alone. Cargo packages crates that need each other from 1.90 on, by a registry in
# target/; what it has unpacked of that, it does not unpack again for the same version.
CARGO_CACHE := $(or $(CARGO_HOME),$(HOME)/.cargo)/registry
.PHONY: package-crates
package-crates:
	@mkdir -p build
	@rm -rf $(CARGO_CACHE)/src/-*/ackwise-* $(CARGO_CACHE)/cache/-*/ackwise-*
	cargo package --quiet --offline --allow-dirty -p ackwise-core -p ackwise-capture \
		$(if $(shell cargo --version | awk -F. '$$2 >= 90'),-p ackwise-diagnose) 2> build/packages.txt || \
		{ cat build/packages.txt; false; }

.PHONY: bench
bench: setup-bench build ## measure against peers (2 minutes); BASELINE=COMMIT: also that one
	$(MAKE) -C bench PYTHON=$(CURDIR)/$(BIN)/python

.PHONY: golden
golden: build $(VENV)/dev ## rewrite the golden tables
	$(BIN)/python tools/golden.py --write

.PHONY: reproduce
reproduce: build ## rerun every published experiment; page and figures in published/
	mkdir -p published
	$(BIN)/ackwise reproduce all --report published/report.html --json published/checks.json --figures published

.PHONY: docs
docs: build $(VENV)/dev ## rewrite the generated parts of docs and of the package for OpenWrt
	$(BIN)/python tools/generated_docs.py --write
	$(BIN)/python tools/record_pages.py --write
	$(BIN)/python tools/openwrt.py --write

.PHONY: site
site: build $(VENV)/docs ## build the documentation's site into build/site
	@$(BIN)/python tools/docs_site.py

.PHONY: man
man: build ## write the man pages into build/man
	$(BIN)/python tools/man.py

.PHONY: claims
claims: ## list every claim with its code and its test
	@python3 tools/claims.py

.PHONY: wheel
wheel: build ## build the wheel into dist/
	rm -rf dist
	+$(BIN)/maturin build --release --quiet --interpreter $(BIN)/python --out dist
	@ls dist

.PHONY: packages
packages: build man ## build wheel, sdist and Debian package into dist/, with SBOM and SHA-256 sums
	@tools/packages.sh dist build/man

# Where sudo and systemd look by default.
PREFIX ?= /usr/local
.PHONY: install uninstall
install: wheel man $(WHEELHOUSE)/ready ## into PREFIX=/usr/local, for all users: program, man pages, completion
	@tools/install.sh install $(PREFIX) dist/ackwise-*.whl $(WHEELHOUSE) build/man

uninstall: ## remove what `make install` has put into PREFIX
	@tools/install.sh uninstall $(PREFIX)

.PHONY: clean
clean: ## remove what was built; .venv stays
	rm -rf build dist target $(BUNDLED) $(LAB_SOURCES) $(DEMO) published python/ackwise/engine/*.so
	$(MAKE) -C core clean
