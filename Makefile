# `make test` needs nothing but Python (>= 3.11) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Processes that share the tests, one thread each.
WORKERS ?= 2

# Cases of the hostile campaign, over all doors, and their seed.
N ?= 10000
SEED ?= 20261117

.PHONY: setup demo test lint types pytest docs gpu-test hostile clean

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

# Random damaged input for every door of the library; failures are kept under tests/hostile/regressions.
hostile: setup
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m hostile.campaign --cases $(N) --seed $(SEED)

clean:
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache .hypothesis
