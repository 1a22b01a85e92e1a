# `make test` needs nothing but Python (>= 3.11) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Processes that share the tests, one thread each.
WORKERS ?= 2

.PHONY: setup demo test lint types pytest docs gpu-test faults clean

setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

demo: setup
	$(BIN)/ckgconv train zinc-demo --out runs/demo-$$(date +%Y%m%d-%H%M%S)

test: lint types pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

pytest: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --cov=ckgconv --cov-fail-under=95 --cov-report=term:skip-covered

# The site under site/; every warning is an error.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# On a machine with a GPU whose python3 holds torch and Triton: the kernels as they are, not by the interpreter.
gpu-test:
	PYTHONPATH=src python3 -m pytest tests/ops tests/backends tests/engine/test_captured.py tests/test_devices.py -p no:cacheprovider

# Runs stopped at every write and at random, damaged and forged folders, settings of all sorts; tests run a sample.
N ?= 200
faults: setup
	OMP_NUM_THREADS=1 $(BIN)/python tests/faults/interruptions.py --random $(N)
	OMP_NUM_THREADS=1 $(BIN)/python tests/faults/folders.py --cases $$((5 * $(N)))
	OMP_NUM_THREADS=1 $(BIN)/python tests/faults/settings.py --cases $$((10 * $(N)))

clean:
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache .hypothesis
