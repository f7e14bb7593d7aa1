# `make` alone lists the targets. All paths are relative, so that the clone may live in a folder
# whose name has a space.

.DEFAULT_GOAL := help
.PHONY: help demo test test-all evals dev bench lint format lock clean FORCE
# Two installs into one .venv at the same time would break it: -j is accepted, without effect.
.NOTPARALLEL:

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

PYTHON_IN_VENV := .venv/bin/python
# Twice quiet: errors only, no warnings about a machine's own pip settings.
PIP_INSTALL := $(PYTHON_IN_VENV) -m pip install -qq
LOCKED := $(PIP_INSTALL) --require-hashes --requirement requirements/runtime.txt --requirement
# One process a core; a file stays in one, with the server that its tests share.
PYTEST = $(PYTHON_IN_VENV) -m pytest --numprocesses auto --dist loadfile
ARGS ?=

help: ## list these targets
	@echo 'make TARGET, where TARGET is one of'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | \
	  while IFS='|' read -r target text; do printf '  %-9s %s\n' "$$target" "$$text"; done
	@echo 'PYTHON=… names the Python that makes .venv (3.11 or newer); ARGS="…" is handed on (test, evals, dev, bench).'

demo: .venv/.runtime ## show the product, offline, in three scenes
	@$(PYTHON_IN_VENV) -m demo

test: .venv/.test ## run the suite without its long part
	@$(PYTEST) -m 'not long' $(ARGS)

test-all: .venv/.test ## run the suite with its long matrices and example counts
	@$(PYTEST) $(ARGS)

evals: .venv/.runtime ## play the cases offline three times each: may this be released?
	@.venv/bin/support-agent evals --repeat 3 --out evals-report $(ARGS)

dev: .venv/.server ## serve the graph on this machine with `langgraph dev` (Ctrl-C ends it)
	@LANGGRAPH_CLI_NO_ANALYTICS=1 LANGGRAPH_NO_VERSION_CHECK=1 \
	  $(PYTHON_IN_VENV) -m langgraph_cli dev --no-browser --n-jobs-per-worker 10 $(ARGS)

bench: .venv/.benchmark ## measure speed beside ToolNode, create_agent and pydantic-ai
	@$(PYTHON_IN_VENV) -m benchmarks.fan_out $(ARGS)
	@$(PYTHON_IN_VENV) -m benchmarks.fan_out --saver $(ARGS)
	@$(PYTHON_IN_VENV) -m benchmarks.conversation
	@$(PYTHON_IN_VENV) -m benchmarks.history
	@$(PYTHON_IN_VENV) -m benchmarks.tracing
	@$(PYTHON_IN_VENV) -m benchmarks.throughput

lint: .venv/.lint ## check format, style, types and who may import whom
	@$(PYTHON_IN_VENV) -m ruff format --quiet --check . || { echo 'The format is off: run `make format`.' >&2; exit 1; }
	@$(PYTHON_IN_VENV) -m ruff check --quiet . || { echo '`make format` mends what it can.' >&2; exit 1; }
	@$(PYTHON_IN_VENV) -m mypy
	@.venv/bin/lint-imports --no-logo

format: .venv/.lint ## rewrite the files in the format that lint checks
	@$(PYTHON_IN_VENV) -m ruff check --quiet --fix-only .
	@$(PYTHON_IN_VENV) -m ruff format --quiet .

lock: .venv/.lint ## pin the dependencies again; UPGRADE=1 takes the newest that fit
	@bash requirements/lock.sh $(if $(UPGRADE),--upgrade)

clean: ## remove .venv, caches and build leftovers; databases stay
	@rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis \
	  .import_linter_cache .langgraph_api
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps: each says that its lock is installed, and is older than what it depends on when it
# has to be installed again.

.venv/.runtime: .venv/pyvenv.cfg requirements/build.txt requirements/runtime.txt pyproject.toml
	@echo 'installing (once, about a minute) …'
	@$(LOCKED) requirements/build.txt
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

.venv/.test: .venv/.server requirements/test.txt
	@echo 'installing what the tests need (once) …'
	@$(LOCKED) requirements/test.txt
	@touch $@

.venv/.lint: .venv/.test requirements/lint.txt
	@echo 'installing what the checks need (once) …'
	@$(LOCKED) requirements/lint.txt
	@touch $@

.venv/.benchmark: .venv/.runtime requirements/benchmark.txt
	@echo 'installing what the benchmarks compare with (once) …'
	@$(LOCKED) requirements/benchmark.txt
	@touch $@

.venv/.server: .venv/.runtime requirements/server.txt
	@echo 'installing the local server (once) …'
	@$(LOCKED) requirements/server.txt
	@touch $@

# A .venv is made again when its Python is gone or too old, when pip is missing, or when the clone
# was moved: installed commands hold the path that they were made under.
VENV_WORKS := $(shell .venv/bin/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' \
  2>/dev/null && grep -qF "$$(pwd -P)/.venv" .venv/bin/activate && echo yes)

.venv/pyvenv.cfg: $(if $(VENV_WORKS),,FORCE)
	@set -- python3.11 python3.12 python3.13 python3; \
	if [ -n "$$PYTHON" ]; then set -- "$$PYTHON"; fi; \
	for python do \
	  "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	  found="$$python"; \
	  "$$python" -c 'import ensurepip, venv' 2>/dev/null || continue; \
	  exec "$$python" -m venv --clear .venv; \
	done; \
	if [ -n "$$found" ]; then \
	  echo "$$found is there, but without the modules venv and ensurepip, so nothing was" \
	    "installed. On Debian and Ubuntu the package python3-venv brings them." >&2; \
	else \
	  echo "No Python 3.11 or newer was found (looked for: $$*), so nothing was installed." \
	    "Install one, or name yours: make demo PYTHON=/path/to/python3" >&2; \
	fi; \
	exit 1

FORCE:
