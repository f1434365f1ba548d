# `make` is on every machine. Each command does all its set-up; see README.md.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PACKAGES := bot runbooks actions audit_log config

.PHONY: help setup demo test check bench mutants docs lock clean
help:            ## show this list
	@grep -E '^[a-z]+: ?.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

setup: $(VENV)/.installed .system-packages  ## environment in .venv; with root also Slurm and a browser

$(VENV)/.installed: requirements-ci.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --require-hashes -r requirements-ci.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

demo: setup      ## the bot, a simulated cluster and a Slack stand-in in the browser
	$(BIN)/python -m bot.cli sandbox --demo
