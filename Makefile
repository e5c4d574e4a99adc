# One entry to everything. Needs make, Rust and Python 3.10 or newer; the rest is set up
# inside .venv on first use, with nothing to activate.
#
# PYTHON is read when .venv is made: run `make clean` before changing it.

PYTHON ?= python3
SECONDS ?= 600
VENV := .venv
BIN := $(VENV)/bin

# maturin installs into the environment that this names, and refuses to choose if conda
# names another.
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
unexport CONDA_PREFIX
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# A stamp tells what .venv holds, so that a second run installs nothing.
VENV_READY := $(VENV)/.venv.stamp
BUILT := $(VENV)/.extension.stamp
EXTRA := $(VENV)/.extra-
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find src -name '*.rs')

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# cargo runs in parallel by itself, and two pips must not write into one .venv.
.NOTPARALLEL:
EXAMPLES := four_algorithms average_and_t0 blood_cells primal_and_dual logistic_sgd_or_sdca
.PHONY: help demo examples test test-rust test-python test-long fuzz sanitize lint lint-rust lint-python bench bench-rust bench-ab docs build clean need-cargo

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(EXTRA)plot.stamp ## fit, certify and plot on bundled data
	$(BIN)/python examples/demo.py

# At full size, with more data: SDCA_RS_DATA=FOLDER .venv/bin/python examples/NAME.py
examples: $(EXTRA)examples.stamp ## run all examples at reduced size, pictures in build/examples
	for name in $(EXAMPLES); do $(BIN)/python examples/$$name.py --quick || exit 1; done
	$(BIN)/python examples/figures.py build/examples/figures
	$(BIN)/python benches/front.py --out build/examples/figures/speed.png

# $(VENV_READY) comes first because it tells at once what the machine lacks.
test: $(VENV_READY) test-rust test-python ## run all tests, Rust and Python

# What a Rust user may ask for: one build, with all tests that there are without.
FEATURES := serde,sprs
test-rust: need-cargo ## run the Rust tests and examples only
	cargo test --locked --features $(FEATURES)
	for file in examples/*.rs; do \
		cargo run --locked --quiet --features $(FEATURES) --example $$(basename $$file .rs) || exit 1; \
	done

# Side by side, but for those that measure how long an interrupt or a fault takes.
TIMED := tests/test_faults.py tests/test_watchdog.py
test-python: $(EXTRA)test.stamp ## run the Python tests only
	$(BIN)/pytest -n auto --dist worksteal $(TIMED:%=--ignore=%)
	$(BIN)/pytest $(TIMED)

lint: lint-rust lint-python ## check format, lints and types, Rust and Python

# Without features, the crate builds where there is no Python: check it both ways, and with what a Rust user may ask for.
lint-rust: need-cargo $(VENV_READY) ## check the Rust side only
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	PYO3_PYTHON=$(CURDIR)/$(BIN)/python cargo clippy --locked --all-targets --features python -- -D warnings
	cargo clippy --locked --all-targets --features serde,sprs -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --features serde,sprs

lint-python: $(EXTRA)dev.stamp ## check the Python side only
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest sdca_rs._core
	$(BIN)/basedpyright --level error --pythonpath $(BIN)/python

# In full, with data: SDCA_RS_DATA=FOLDER .venv/bin/python benches/compare.py, and benches/matrix.py
# for which problems are certified by default settings.
# The bounded form is `fuzz/run.sh 8`, part of .ci/run.
fuzz: need-cargo ## fuzz the core: SECONDS=600 for each target, two at a time
	bash fuzz/run.sh $(SECONDS)

# Random seeds and some twenty times as many cases; the clock decides nothing.
test-long: $(EXTRA)test.stamp ## the laws and the oracle at length
	SDCA_RS_LONG=1 $(BIN)/pytest --timeout 3600 tests/test_exact.py tests/test_hypothesis.py \
		tests/test_watchdog.py tests/test_faults.py

sanitize: $(EXTRA)test.stamp ## unit tests with the address sanitiser; .ci/sanitize valgrind takes long
	bash .ci/sanitize

bench: $(EXTRA)compare.stamp ## compare with other libraries, in short
	$(BIN)/python benches/compare.py --quick --out build/bench

bench-rust: need-cargo ## measure kernels and epochs
	cargo bench --locked

# Of the sets, losses and C that ARGS names, see benches/ab.py; SDCA_RS_DATA=FOLDER for more than bundled data.
bench-ab: $(BUILT) ## compare the working tree with BASE=REVISION, fit by fit
	$(BIN)/python benches/ab.py $(BASE) $(ARGS)

# It also runs the stories in examples/stories.
docs: $(EXTRA)docs.stamp ## build the documentation into build/docs
	$(BIN)/sphinx-build -W --keep-going -b html docs build/docs

build: $(BUILT) ## compile the extension into .venv

clean: ## remove all that make has made, .venv too
	rm -rf $(VENV) target build dist docs/generated .pytest_cache .mypy_cache .ruff_cache
	rm -f python/sdca_rs/_core*.so python/sdca_rs/_core*.pyd
	find python tests examples docs -name __pycache__ -prune -exec rm -rf {} +

need-cargo:
	@command -v cargo >/dev/null || { \
		echo 'cargo is not on PATH: install Rust, see https://www.rust-lang.org/tools/install' >&2; \
		exit 1; }

# The same maturin as in [build-system] of pyproject.toml.
$(VENV_READY): pyproject.toml | need-cargo
	@test -x $(BIN)/pip || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
		echo 'PYTHON=$(PYTHON) is missing or older than 3.10: name a newer one, make PYTHON=python3.12' >&2; \
		exit 1; }
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet 'maturin>=1.9.4,<2'
	@touch $@

# In place and editable: a change of Python code needs no build.
$(BUILT): $(VENV_READY) $(RUST_SOURCES)
	PIP_QUIET=1 $(BIN)/maturin develop --release --locked
	@touch $@

# By the name of the package, which is installed by now: pip then reads the extras, also
# those that refer to each other, from its metadata. `maturin develop --extras` cannot do
# the latter, and `pip install .[test]` would compile once more.
$(EXTRA)%.stamp: pyproject.toml $(VENV_READY) | $(BUILT)
	$(BIN)/pip install --quiet 'sdca-rs[$*]'
	@touch $@
