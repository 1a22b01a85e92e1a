# `make test` needs nothing but Python (>= 3.11) and make; as root on Debian it installs Chromium for the tests of pages.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# Processes that share the tests, one thread each.
WORKERS ?= 2

# Cases of `make hostile`, over all doors, and their seed.
N ?= 10000
SEED ?= 20261117
# Random interruptions of `make faults`; five times as many damaged folders, ten times as many settings.
KILLS ?= 200

# Versions of `make versions`: an interpreter and the torch it is tested with.
VERSIONS ?= python3.11=2.11.0 python3.12=2.13.0 python3.13=2.13.0

.PHONY: setup demo test lint types pytest browser docs audit package versions gpu-test hostile faults clean

setup: $(VENV)/.installed

# What is pinned comes with its digest; what a platform needs besides (CUDA libraries of torch) follows from the pins.
$(VENV)/.installed: pyproject.toml constraints.txt hashes.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --require-hashes --no-deps -r hashes.txt
	$(PIP) install --no-build-isolation -c constraints.txt -e ".[dev]"
	touch $@

demo: setup
	$(BIN)/ckgconv train zinc-demo --out runs/demo-$$(date +%Y%m%d-%H%M%S)

test: lint types pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

# Chromium, in which tests open the pages that are written, and its driver, by which they click on them; where they cannot
# be installed these tests are skipped, but in CI.
browser:
	@{ { command -v chromium || command -v chromium-browser || command -v google-chrome; } && command -v chromedriver; } >/dev/null \
	|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq \
	&& DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null; } \
	|| echo "Chromium could not be installed here (that takes root and apt-get): tests that open pages are skipped, and fail in CI."

pytest: setup browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --cov=ckgconv --cov-fail-under=95 --cov-report=term:skip-covered

# The site under site/; every warning is an error.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# Unsafe calls in the source, and known vulnerabilities of the pinned versions where the package index lists them.
audit: setup
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive src
	$(BIN)/pip-audit --progress-spinner off --disable-pip --requirement hashes.txt

# Wheel and source archive, used from a clean environment that has nothing but the wheel and what it needs.
package: setup
	rm -rf dist build/clean
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(PYTHON) -m venv build/clean
	build/clean/bin/python -m pip --quiet --disable-pip-version-check install -c constraints.txt "$$(ls dist/*.whl)[molecules]"
	$(BIN)/python .ci/check_package.py dist build/clean/bin/python

# The core under other versions of Python and torch; downloads gigabytes, so CI leaves it out.
versions:
	$(PYTHON) tests/versions.py $(VERSIONS)

# On a machine with a GPU whose python3 holds torch and Triton: the kernels as they are, not by the interpreter.
gpu-test:
	PYTHONPATH=src python3 -m pytest tests/ops tests/backends tests/engine/test_captured.py tests/test_devices.py \
	tests/test_golden_grit.py -p no:cacheprovider

# Random damaged input for every door of the library; failures are kept under tests/hostile/regressions.
hostile: setup
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m hostile.campaign --cases $(N) --seed $(SEED)

# Runs stopped at every write and at random, damaged and forged folders, settings of all sorts; tests run a sample.
faults: setup
	OMP_NUM_THREADS=1 $(BIN)/python tests/faults/interruptions.py --random $(KILLS)
	OMP_NUM_THREADS=1 $(BIN)/python tests/faults/folders.py --cases $$((5 * $(KILLS)))
	OMP_NUM_THREADS=1 $(BIN)/python tests/faults/settings.py --cases $$((10 * $(KILLS)))

clean:
	rm -rf $(VENV) .versions dist build site .pytest_cache .mypy_cache .ruff_cache .hypothesis
