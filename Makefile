# `make` prints the targets. Every recipe runs in plain sh.

PYTHON ?= python3
CRASH_KILLS ?= 500
CROWD ?= 1000
FUZZ_EXAMPLES ?= 300
UPKEEP_MESSAGES ?= 100000
BENCH ?=
TESTS ?=

BIN := .venv/bin
VENV := PYTHON='$(PYTHON)' sh deploy/venv.sh
PYTEST := $(BIN)/python -m pytest -n 4 --dist worksteal
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' \
	--group dev $(LOCK_FLAGS) pyproject.toml

# What to do next, as the last line of a target. A CI's log ends with the tests' own summary instead.
next = @$(if $(CI),:,printf '\n%s\n' "Next: $(1)")

# Containers often forbid bytecode files. The tests start thousands of processes, which would all compile.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help up down venv test real clis crash fuzz crowd upkeep check check-format check-lint check-types check-imports \
	format docs pictures bench bench-check lock clean

help: ## Print this list
	@echo 'Bullpen: a company of AI agents on a durable SQL queue'
	@echo
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## \(.*\)/\1|\2/p' Makefile | \
		while IFS='|' read -r name text; do printf '  make %-11s %s\n' "$$name" "$$text"; done
	@echo
	@echo '  PYTHON=python3.12 chooses the interpreter (3.11 or later); TESTS="tests/unit -k lease" some tests.'
	$(call next,make up)

up: venv ## Install what is missing and start Bullpen
	$(BIN)/bullpen up
	$(call next,$(BIN)/bullpen status shows what runs; $(BIN)/bullpen send 'hello' asks the first agent; make down stops it)

down: ## Stop Bullpen; nothing that waits is lost
	@if [ -x $(BIN)/bullpen ]; then echo '$(BIN)/bullpen down'; $(BIN)/bullpen down; \
	else echo 'Bullpen is not installed here, so there is nothing to stop.'; fi
	$(call next,make up starts it again)

venv: ## Make or refresh .venv from requirements.lock (the other targets do it by themselves)
	@$(VENV)
	$(if $(filter venv,$(MAKECMDGOALS)),$(call next,make up or make test or . $(BIN)/activate))

test: venv ## Run the tests, four at a time: many of them wait
	$(PYTEST) $(TESTS)
	$(call next,make check)

real: venv clis ## Install claude and codex into .clis and run the tests that drive them, without an account
	BULLPEN_REAL=1 $(PYTEST) $(or $(TESTS),tests/real)
	$(call next,make check)

clis:
	@PYTHON='$(PYTHON)' sh deploy/clis.sh

crash: venv ## Run the long crash tests (CRASH_KILLS=500 kills)
	CRASH_KILLS=$(CRASH_KILLS) $(BIN)/python -m pytest --timeout=0 tests/crash
	$(call next,make bench)

fuzz: venv ## Try every operation of the API with FUZZ_EXAMPLES=300 requests, chosen anew
	FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) $(PYTEST) tests/api/test_fuzz.py
	$(call next,make crash)

crowd: venv ## Try the API under CROWD=1000 slow connections of each kind
	CROWD=$(CROWD) $(BIN)/python -m pytest --timeout=0 tests/api/test_slow_clients.py
	$(call next,make bench)

upkeep: venv ## Take in UPKEEP_MESSAGES=100000 a day for 30 simulated days: the database must stop growing
	UPKEEP_MESSAGES=$(UPKEEP_MESSAGES) $(BIN)/python -m pytest --timeout=0 -s tests/maintenance/test_growth.py
	$(call next,make crash)

check: check-format check-lint check-types check-imports ## Check format, lint, types and imports
	$(call next,make test)

check-format: venv
	$(BIN)/ruff format --check

check-lint: venv
	$(BIN)/ruff check

check-types: venv
	$(BIN)/mypy

check-imports: venv
	$(BIN)/lint-imports --no-logo

format: venv ## Format the code and mend what the linter can mend
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format
	$(call next,make check)

docs: venv ## Bring the pages of docs/ up to date that follow from the code
	$(BIN)/python -m tests.docs.render
	$(call next,git diff docs)

pictures: venv ## Take the pictures of the terminal in docs/pictures anew (needs tmux)
	$(BIN)/python -m tests.docs.pictures
	$(call next,git diff --stat docs/pictures)

bench: ## Measure the queue beside its peers (installs them; BENCH="..." are arguments)
	@$(VENV) bench
	$(BIN)/python -m tests.bench $(BENCH)
	$(call next,read the results in bench-results/)

bench-check: venv ## Run every section of the benchmark once at its smallest, and its own tests
	$(PYTEST) -m bench
	$(call next,make bench)

lock: venv ## Pin the dependencies anew (LOCK_FLAGS=--upgrade takes the newest)
	$(COMPILE) --output-file requirements.lock
	$(COMPILE) --extra bench --constraints requirements.lock --no-annotate \
		--output-file requirements-bench.lock
	$(call next,git diff requirements.lock then make test)

clean: ## Stop Bullpen; remove .venv, .clis, caches and build artefacts (its own data stays)
	@if [ -x $(BIN)/bullpen ]; then $(BIN)/bullpen down >/dev/null 2>&1 || true; fi
	rm -rf .venv .clis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist
	find packages tests migrations -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
	$(call next,make up or make test makes .venv again)
