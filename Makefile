# Two commands are enough: `make demo` and `make test`. Both set up .venv when it is missing.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
UV     := $(shell command -v uv 2>/dev/null)
JOBS   ?= auto

ifdef UV
CREATE  = uv venv --seed --python $(PYTHON) $(VENV)
INSTALL = uv pip install --quiet --python $(BIN)/python
else
CREATE  = $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install --quiet --upgrade pip
INSTALL = $(BIN)/python -m pip install --quiet
endif

.PHONY: help demo test lint types unit bench results docs clean

help:
	@echo "make demo   cluster embedded data, print a table, leave a figure under out/"
	@echo "make test   lint, types, doctests and tests"
	@echo "make bench  benchmarks beside scikit-learn (minutes)"
	@echo "make results  docs/results.md from the papers' records"
	@echo "make docs   the documentation site, to docs/_build/html"
	@echo "make clean  remove the environment and everything built"

$(BIN)/python:
	$(CREATE)

# A stamp a set of packages: installed once, and again when pyproject.toml changes.
$(VENV)/.all $(VENV)/.dev $(VENV)/.docs: $(VENV)/.%: pyproject.toml | $(BIN)/python
	$(INSTALL) --editable ".[$*]"
	@touch $@

demo: $(VENV)/.all
	$(BIN)/python examples/demo.py

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

# One BLAS thread a worker, so that the cores are not crowded; the variable lets scikit-learn check array API input.
unit: $(VENV)/.dev
	OMP_NUM_THREADS=1 SCIPY_ARRAY_API=1 $(BIN)/pytest -n $(JOBS)

test: lint types unit

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/bench_graph.py
	$(BIN)/python benchmarks/bench_eigen.py
	$(BIN)/python benchmarks/bench_mixture.py
	$(BIN)/python benchmarks/bench_documents.py --growth yes
	$(BIN)/python benchmarks/bench_cuts.py
	$(BIN)/python benchmarks/bench_manifold.py --sizes 10000 200000

# The page of results, from the records that are kept beside the protocols.
results: $(VENV)/.dev
	$(BIN)/python -m fiedler.experiments.pages docs/results.md

# The site; a warning is an error. One BLAS thread, as the gallery's examples are too small for more.
docs: $(VENV)/.docs
	OMP_NUM_THREADS=1 $(BIN)/sphinx-build -q -W --keep-going docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean:
	rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache docs/_build docs/generated docs/gallery
