# `make` brings a clean machine to a trained, evaluated model; `make test` is what CI runs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN ?= runs/toy_birds

.PHONY: all setup lock lint format test test-slow wheel docs live benchmarks models-page clean

all: setup
	$(BIN)/python recipes/pfe_cub.py --out $(RUN)

setup: $(VENV)/.installed

$(VENV)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# Exact versions for every supported Python and platform, and nothing about where they come from.
lock: setup
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 \
		--no-header --no-annotate --no-emit-index-url --quiet --output-file requirements.lock

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

test-slow: setup
	$(BIN)/python -m pytest -m very_slow

wheel: setup
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

# Strictly, without network: a dead link is an error. In build/site.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

# The site with docs/live.md's model in it, which runs in the visitor's browser: needs npm.
live: docs
	$(BIN)/python -m tools.live build/site

benchmarks: setup
	$(BIN)/python -m benchmarks

# The tables of docs/models.md, from the settings and results in docs/runs.
models-page: setup
	$(BIN)/python -m tools.models_page docs/runs/* --papers --out docs/models.md

clean:
	rm -rf runs build dist .pytest_cache .ruff_cache
