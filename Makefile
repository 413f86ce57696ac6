# SPDX-License-Identifier: MIT
# Verbs only; what they do is in tools/, core/Makefile, cargo and pytest. `make help` lists them.

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
help: ## list the verbs
	@grep -hE '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed 's/:.*## /\t/' | expand -t 12

.PHONY: setup
setup: ## install what building and running needs (Debian packages, .venv)
	@tools/setup.sh build capture
	@$(MAKE) $(VENV)/ready

.PHONY: setup-test
setup-test: ## besides: what tests and lints need
	@tools/setup.sh build capture lab-source lab-build lab-run check evidence test lint
	@$(MAKE) $(VENV)/ready $(WHEELHOUSE)/ready
	@cargo fetch --quiet --locked
	@cargo fetch --quiet --locked --manifest-path crates/capture/fuzz/Cargo.toml

$(VENV)/ready: pyproject.toml tools/pins.py
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python tools/pins.py dev > $(VENV)/pins.txt
	$(BIN)/pip install -q -r $(VENV)/pins.txt
	touch $@

# Fetched once, so that the test of the wheel needs no network.
$(WHEELHOUSE)/ready: pyproject.toml tools/pins.py | $(VENV)/ready
	mkdir -p $(WHEELHOUSE)
	$(BIN)/python tools/pins.py > $(WHEELHOUSE)/pins.txt
	$(BIN)/pip download -q -d $(WHEELHOUSE) -r $(WHEELHOUSE)/pins.txt
	touch $@

.PHONY: build
build: setup ## compile the engine into .venv (editable)
	@PIP_QUIET=1 $(BIN)/maturin develop --release --quiet

.PHONY: demo
demo: build ## compare policies on shipped links and on a real capture; HTML reports in demo/
	@tools/demo.sh $(BIN)/ackwise $(DEMO)

KERNEL ?= yes

.PHONY: kernel
kernel: setup-test build ## build the lab's kernels and check the patch series; once for each change
	$(BIN)/ackwise lab build --stock
	$(BIN)/ackwise lab build
	UNLESS_PASSED=1 STRESS_SECONDS=20 linux/check apply style off warnings kunit selftest stress placed

# Guests of the lab keep one core busy; what needs none of them runs beside.
.PHONY: test
test: setup-test build $(if $(filter yes,$(KERNEL)),kernel) ## every test; KERNEL=no leaves the real kernel out
	$(MAKE) -s -C core test mutants asan cross size fuzz FUZZ_SECONDS=10
	cargo test --release --workspace --quiet
	$(MAKE) -s -C crates/capture fuzz FUZZ_SECONDS=10
	$(MAKE) wheel
	tools/check_wheel.sh dist/ackwise-*.whl $(WHEELHOUSE)
	$(BIN)/pytest -q -p no:cacheprovider -m lab & lab=$$!; \
		$(BIN)/pytest -q -m "not lab" || failed=yes; \
		wait $$lab && test -z "$${failed:-}"
	$(BIN)/python tools/experiments.py --check

.PHONY: lint
lint: setup-test build ## formatting, warnings, types, licences, generated docs
	$(MAKE) -s -C core lint
	cargo fmt --all --check
	if cargo clippy --version >/dev/null 2>&1; then \
		cargo clippy --release --workspace --all-targets --quiet -- -D warnings; \
	else \
		echo "clippy is not packaged for this toolchain: not run"; \
	fi
	$(BIN)/ruff check --quiet python tools
	$(BIN)/ruff format --quiet --check python tools
	$(BIN)/mypy
	$(BIN)/python tools/spdx.py
	$(BIN)/python tools/generated_docs.py --check

.PHONY: bench
bench: build ## measure against peers and baselines (about 2 minutes)
	@tools/setup.sh bench
	$(MAKE) -C bench PYTHON=$(CURDIR)/$(BIN)/python

.PHONY: golden
golden: build ## write the golden tables anew
	$(BIN)/python tools/golden.py --write

.PHONY: reproduce
reproduce: build ## run every published experiment again; page and figures in published/
	mkdir -p published
	$(BIN)/ackwise reproduce all --report published/report.html --json published/checks.json --figures published

.PHONY: experiments
experiments: build ## write tables and figures of docs/experiments anew
	$(BIN)/python tools/experiments.py --write

.PHONY: experiments-linux
experiments-linux: build ## the same for those of the real kernel, which is built if need be
	$(BIN)/ackwise lab build
	$(BIN)/python tools/experiments.py --write --on linux

.PHONY: docs
docs: build ## write the generated parts of docs anew
	$(BIN)/python tools/generated_docs.py --write

.PHONY: wheel
wheel: setup ## build the wheel into dist/
	rm -rf dist
	$(BIN)/maturin build --release --quiet --out dist
	@ls dist

.PHONY: clean
clean: ## remove what was built; .venv stays
	rm -rf build dist target $(DEMO) published python/ackwise/*.so
	$(MAKE) -C core clean
