# `make` is on every machine. Each command does its own set-up; README.md says what each is for.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
WHEEL_VENV := .venv-wheel

.PHONY: help setup environment demo test unit slurm-tests wheel-tests long-tests check docs bench \
  mutants lock clean
help:            ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/'

setup: environment  ## everything: .venv from the lock, and with root also Slurm, sshd, Alertmanager, Chromium
	@.ci/system-packages slurm ssh power pages browser

environment: $(VENV)/.installed  ## .venv from the lock, nothing else

$(VENV)/.installed: requirements-ci.txt pyproject.toml .ci/make-venv
	@.ci/make-venv $(PYTHON) $(VENV)
	@$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable . \
	  > $(VENV)/editable.log 2>&1 || { cat $(VENV)/editable.log; exit 1; }
	@touch $@

$(WHEEL_VENV)/.installed: requirements-ci.txt .ci/make-venv
	@.ci/make-venv $(PYTHON) $(WHEEL_VENV)
	@touch $@

demo: environment  ## the bot at work: a cluster, a Slack stand-in in the browser, a node that drops
	@.ci/system-packages slurm
	$(BIN)/python -m bot.cli sandbox --demo

# Tests on a real Slurm wait most of the time: those from the checkout and those of the wheel run side
# by side, each on a cluster of its own.
test: setup unit  ## every test: units, then those on a real Slurm beside the installed wheel
	$(MAKE) --jobs 2 --output-sync=target slurm-tests wheel-tests

# The order is that of tests/conftest.py, long files first: else the two processes end far apart.
unit: environment  ## tests that run from the checkout and need no Slurm
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not e2e and not slurm" tests

slurm-tests: environment  ## tests that run from the checkout on a real Slurm
	$(BIN)/python -m pytest -m "slurm and not e2e and not long" tests

long-tests: environment  ## minutes of a real Slurm for one fact; not part of `make test`
	$(BIN)/python -m pytest -m long tests

# The wheel is made without leftovers of earlier builds, and its tests see no other copy of the
# program: they run in a folder that holds nothing but the tests.
wheel-tests: environment $(WHEEL_VENV)/.installed  ## end-to-end tests of the built wheel
	@rm -rf build dist
	@$(BIN)/python -m build --wheel --no-isolation --outdir dist . > $(VENV)/wheel.log 2>&1 \
	  || { cat $(VENV)/wheel.log; exit 1; }
	@$(WHEEL_VENV)/bin/pip install --quiet --force-reinstall --no-deps dist/*.whl
	@set -e; folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	  cp -r tests pyproject.toml "$$folder"; wheel=$(abspath $(WHEEL_VENV)); \
	  cd "$$folder"; PATH="$$wheel/bin:$$PATH" NODEWARDEN_WHEEL=1 \
	    "$$wheel/bin/python" -m pytest -m "e2e and not long" tests/e2e

check: environment  ## format, lint, strict types, import contracts, spelling, documentation
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/ruff check --config ruff-deciders.toml .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/python -m pytest -q tests/test_layout.py tests/test_docs.py

docs: environment  ## write docs/reference/ again
	$(BIN)/python -m tests.write_reference

bench: environment  ## the numbers of the README, printed as a table
	$(BIN)/python -m tests.bench

mutants: environment  ## each promise broken on purpose: which test notices
	$(BIN)/python -m tests.mutants

lock: environment  ## resolve the dependencies again and pin them with hashes
	@$(BIN)/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras \
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options \
	  --no-header --no-annotate --extra dev --output-file requirements-ci.txt pyproject.toml

clean:           ## remove what these commands made
	rm -rf $(VENV) $(WHEEL_VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
