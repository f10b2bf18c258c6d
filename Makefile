# `make` lists the targets. Every recipe runs in plain sh.

PYTHON ?= python3
CRASH_KILLS ?= 500
CROWD ?= 1000
FUZZ_EXAMPLES ?= 300
UPKEEP_MESSAGES ?= 100000
SOAK ?= 10000
BENCH ?=
TESTS ?=

BIN := .venv/bin
VENV := PYTHON='$(PYTHON)' sh deploy/venv.sh
PYTEST := $(BIN)/python -m tests.init $(BIN)/python -m pytest -n 4 --dist worksteal
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' $(LOCK_FLAGS)
DEVELOPMENT := --group dev

# Prints the next command as the last line of a target. The log of a CI ends with the summary of the tests instead.
next = @$(if $(CI),:,printf '\n%s\n' "Next: $(1)")

# Containers often forbid bytecode files. The tests start thousands of processes, and each would compile every module.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help up down venv dev-venv reports test all-stores long real clis crash fuzz crowd upkeep soak-channels fresh check check-format check-lint \
	check-types check-imports format docs transcripts pictures wheel bench bench-check lock clean

help: ## List the targets
	@echo 'Bullpen: a durable queue and services that run teams of AI agents'
	@echo
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## \(.*\)/\1|\2/p' Makefile | \
		while IFS='|' read -r name text; do printf '  make %-13s %s\n' "$$name" "$$text"; done
	@echo
	@echo '  PYTHON=python3.12 sets the interpreter (3.11 or later). TESTS="tests/unit -k lease" selects tests.'
	$(call next,make up)

up: venv ## Install the runtime dependencies and start Bullpen
	$(BIN)/bullpen up
	$(call next,$(BIN)/bullpen send 'hello' asks the first agent; $(BIN)/bullpen status shows the services; make down stops them)

down: ## Stop Bullpen; pending messages stay in the queue
	@if [ -x $(BIN)/bullpen ]; then echo '$(BIN)/bullpen down'; $(BIN)/bullpen down; \
	else echo 'Bullpen is not installed in this directory: nothing to stop.'; fi
	$(call next,make up starts it again)

venv: ## Create or update .venv with the runtime dependencies
	@$(VENV)
	$(if $(filter venv,$(MAKECMDGOALS)),$(call next,make up or make test or . $(BIN)/activate))

dev-venv: ## Create or update .venv with the development tools as well
	@$(VENV) dev

reports: ## Install Spark (1 GB) into .venv, then bring the reports up to date
	@$(VENV) reports
	$(BIN)/bullpen report run
	$(call next,$(BIN)/bullpen report list)

test: dev-venv ## Run the tests, four at a time
	$(PYTEST) $(TESTS)
	$(call next,make check)

all-stores: dev-venv ## Run the tests, all of them on SQLite and on PostgreSQL, and the long ones
	BULLPEN_TEST_ALL_STORES=1 $(PYTEST) -m 'not bench' $(TESTS)
	$(call next,make check)

long: dev-venv ## Run the tests that start Spark as people do: commands, kills, a cluster, Java 25
	$(PYTEST) -m long $(or $(TESTS),tests/reports)
	$(call next,make check)

real: dev-venv clis ## Install claude and codex into .clis and test with them; needs no account
	BULLPEN_REAL=1 $(PYTEST) $(or $(TESTS),tests/real)
	$(call next,make check)

clis:
	@PYTHON='$(PYTHON)' sh deploy/clis.sh

crash: dev-venv ## Run the long crash tests (CRASH_KILLS=500 kills)
	CRASH_KILLS=$(CRASH_KILLS) $(BIN)/python -m pytest --timeout=0 tests/crash
	$(call next,make bench)

fuzz: dev-venv ## Send FUZZ_EXAMPLES=300 random requests to every operation of the API
	FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) $(PYTEST) tests/api/test_fuzz.py
	$(call next,make crash)

crowd: dev-venv ## Test the API with CROWD=1000 slow connections of each kind
	CROWD=$(CROWD) $(BIN)/python -m pytest --timeout=0 tests/api/test_slow_clients.py
	$(call next,make bench)

upkeep: dev-venv ## Simulate 30 days of UPKEEP_MESSAGES=100000; the database must stop growing
	UPKEEP_MESSAGES=$(UPKEEP_MESSAGES) $(BIN)/python -m pytest --timeout=0 -s tests/maintenance/test_growth.py
	$(call next,make crash)

soak-channels: dev-venv ## Kill everything around SOAK=10000 messages on each channel
	SOAK=$(SOAK) $(BIN)/python -m pytest --timeout=0 -s tests/channels/test_soak.py
	$(call next,make bench)

fresh: ## Install on a bare Debian root, from a clone and from the wheel (needs root and debootstrap)
	@PYTHON='$(PYTHON)' bash deploy/fresh.sh
	$(call next,make test)

check: check-format check-lint check-types check-imports ## Check format, lint, types and imports
	$(call next,make test)

check-format: dev-venv
	$(BIN)/ruff format --check

check-lint: dev-venv
	$(BIN)/ruff check

check-types: dev-venv
	$(BIN)/mypy

check-imports: dev-venv
	$(BIN)/lint-imports --no-logo

format: dev-venv ## Format the code and apply the linter's fixes
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format
	$(call next,make check)

docs: dev-venv ## Regenerate the reference pages in docs/
	$(BIN)/python -m tests.docs.render
	$(call next,git diff docs)

transcripts: dev-venv ## Run the commands of README and tutorial, and write their output into the pages
	$(BIN)/python -m tests.docs.transcripts
	$(call next,git diff README.md docs/tutorial)

pictures: dev-venv ## Regenerate the terminal pictures in docs/pictures (needs tmux)
	$(BIN)/python -m tests.docs.pictures
	$(call next,git diff --stat docs/pictures)

wheel: venv ## Build the wheel into dist/
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	$(call next,uv tool install dist/*.whl)

bench: ## Benchmark the queue and other queues (installs them; BENCH="..." are arguments)
	@$(VENV) bench
	$(BIN)/python -m tests.bench $(BENCH)
	$(call next,read the results in bench-results/)

bench-check: dev-venv ## Run the shortest form of the benchmark, and its tests
	$(PYTEST) -m bench
	$(call next,make bench)

lock: dev-venv ## Pin the dependencies again (LOCK_FLAGS=--upgrade takes the newest)
	$(COMPILE) --group build --output-file requirements.lock pyproject.toml
	$(COMPILE) --group build --extra reports --constraints requirements.lock \
		--output-file requirements-reports.lock pyproject.toml
	$(COMPILE) $(DEVELOPMENT) --extra reports --constraints requirements-reports.lock \
		--output-file requirements-dev.lock pyproject.toml
	$(COMPILE) $(DEVELOPMENT) --extra reports --extra bench --constraints requirements-dev.lock --no-annotate \
		--output-file requirements-bench.lock pyproject.toml
	$(call next,git diff requirements*.lock then make test)

clean: ## Stop Bullpen; remove .venv, .clis, caches and build artefacts, but none of Bullpen's data
	@if [ -x $(BIN)/bullpen ]; then $(BIN)/bullpen down >/dev/null 2>&1 || true; fi
	rm -rf .venv .clis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist
	find packages tests migrations -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
	$(call next,make up or make test creates .venv again)
