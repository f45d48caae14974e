# `make` brings a clean machine to a trained, evaluated model and to answers over real photos. It needs
# no data and takes two to four minutes on two cores. `make test` is what CI runs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DRAWN := runs/toy_photos
RUN ?= runs/toy_birds
INDEX := runs/packaged_photos

# Where the machine forbids compiled files every command compiles TensorFlow and Keras anew: 10 s to
# import them in place of 5.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: all setup lock lint format test test-slow mutants wheel docs benchmarks figures clean

# Trains on drawn birds, as on your own folder, since nothing is trained on the packaged photos; then
# asks the packaged photos by the packaged model.
all: setup $(DRAWN)/pairs.csv
	$(BIN)/halo train own_pairs --data-dir $(DRAWN) --held-out-share 0.2 --epochs 2 --variance-epochs 2 --out $(RUN)
	$(BIN)/halo search build halo_search/photos $(INDEX) --model photos_pfe
	$(BIN)/halo search query $(INDEX) \
		"a bus on a city street" "people outdoors" "a giraffe" -k 3

$(DRAWN)/pairs.csv: | setup
	$(BIN)/python -m tools.drawn_photos $(DRAWN)

setup: $(VENV)/.installed

# --no-compile: no command imports half of what is installed. --no-deps: the file lists all of it.
$(VENV)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps \
		-r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# Exact versions for every supported Python and platform, and nothing about where they come from.
lock: setup
	$(BIN)/uv pip compile pyproject.toml --extra all --extra dev --universal --python-version 3.11 \
		--no-header --no-annotate --no-emit-index-url --quiet --output-file requirements.lock

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# A test that waits for ever ends its process after five minutes, and says where it waited.
test: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder \
		-o faulthandler_timeout=300 -o faulthandler_exit_on_timeout=true

test-slow: setup
	$(BIN)/python -m pytest -m very_slow

# Plants errors in the code, one at a time, and prints which test catches each; minutes.
mutants: setup
	$(BIN)/python -m tools.mutants

wheel: setup
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

# Strictly, without network: a dead link is an error. In build/site.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

benchmarks: setup
	$(BIN)/python -m benchmarks

# Every figure that several pages show, from the presets' cards.
figures: setup
	$(BIN)/python -m tools.figures

clean:
	rm -rf runs build dist .pytest_cache .ruff_cache
