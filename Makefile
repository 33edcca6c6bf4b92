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

.PHONY: help demo test test-slow lint types unit coverage fuzz fuzz-files faults endurance lowest bench results docs stubs wheel clean

help:
	@echo "make demo   cluster bundled data, print a table, write two figures and a report to out/"
	@echo "make test   lint, types, doctests and the tests that protect every change (minutes)"
	@echo "make test-slow  laws, mutations, fault sweeps, processors, killed workers, real data, gallery"
	@echo "make coverage  branch coverage of every package, compared with its target"
	@echo "make fuzz-files  a million mutations of model and graph files (an hour; N=... for another number)"
	@echo "make fuzz   laws on 100,000 generated examples, to out/fuzz.jsonl; continues where it was stopped"
	@echo "make endurance  1,000 fits in one process, and eight threads at once (minutes)"
	@echo "make faults  every file operation and allocation of every command fails once (minutes)"
	@echo "make lowest  the tests with the lowest declared version of every dependency (minutes)"
	@echo "make bench  benchmarks compared with scikit-learn (minutes)"
	@echo "make results  docs/results.md from the papers' records"
	@echo "make stubs  src/fiedler/__init__.pyi from the registry of estimators"
	@echo "make wheel  both distributions, built twice and compared, to dist/"
	@echo "make docs   the documentation site, to docs/_build/html"
	@echo "make clean  remove the environment and everything built"

$(BIN)/python:
	$(CREATE)

# One stamp per set of packages: installed once, and again when a pyproject.toml changes. The papers' distribution adds
# `fiedler reproduce`; the demo does without it.
$(VENV)/.all: pyproject.toml | $(BIN)/python
	$(INSTALL) --editable ".[all]"
	@touch $@

$(VENV)/.dev $(VENV)/.docs: $(VENV)/.%: pyproject.toml papers/pyproject.toml | $(BIN)/python
	$(INSTALL) --editable ".[$*]" --editable ./papers
	@touch $@

demo: $(VENV)/.all
	$(BIN)/python examples/demo.py

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

types: $(VENV)/.dev
	$(BIN)/mypy

# One BLAS thread per pytest worker, to avoid oversubscribing the cores; SCIPY_ARRAY_API=1 enables scikit-learn's checks of
# array API input.
unit: $(VENV)/.dev
	OMP_NUM_THREADS=1 SCIPY_ARRAY_API=1 $(BIN)/pytest -m "not slow" -n $(JOBS) --dist worksteal --durations=25

# What `make test` leaves out.
test-slow: $(VENV)/.dev
	OMP_NUM_THREADS=1 SCIPY_ARRAY_API=1 $(BIN)/pytest -m slow -n $(JOBS) --dist worksteal --durations=25

# Two checks that need one core each, then the tests, which need all of them.
test: $(VENV)/.dev
	$(MAKE) -j2 lint types
	$(MAKE) unit

# Branch coverage, also of subprocesses, by package; .ci/check_coverage.py has the targets.
coverage: $(VENV)/.dev
	$(BIN)/coverage erase
	OMP_NUM_THREADS=1 SCIPY_ARRAY_API=1 $(BIN)/coverage run -m pytest -n $(JOBS) --dist worksteal
	$(BIN)/coverage combine --quiet
	mkdir -p out && $(BIN)/coverage json --quiet -o out/coverage.json
	$(BIN)/python .ci/check_coverage.py out/coverage.json

# Mutations of model and graph files; findings are in out/fuzz-files.
N ?= 1000000
FUZZ_JOBS ?= $(shell nproc 2>/dev/null || echo 1)
fuzz-files: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python tests/file_fuzzing.py --n $(N) --jobs $(FUZZ_JOBS)

# FUZZ_EXAMPLES examples in JOBS processes. A unit of the record is not run again; FUZZ_OPTIONS=--again repeats those with
# a defect. The summary ends with an error if there is one; otherwise the table of the documentation is written.
FUZZ_EXAMPLES ?= 100000
FUZZ_RECORD   ?= out/fuzz.jsonl

fuzz: $(VENV)/.dev
	PYTHONPATH=tests OMP_NUM_THREADS=1 SCIPY_ARRAY_API=1 $(BIN)/python -m laws.fuzz run $(FUZZ_RECORD) --examples $(FUZZ_EXAMPLES) --jobs $(JOBS) $(FUZZ_OPTIONS)
	PYTHONPATH=tests $(BIN)/python -m laws.fuzz page $(FUZZ_RECORD) docs/reliability.md --short tests/laws/record.jsonl

# A long-lived process: memory, threads and descriptors do not grow, and threads do not disturb each other.
endurance: $(VENV)/.dev
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m faults.endurance 1000

faults: $(VENV)/.dev
	FIEDLER_FAULTS=all OMP_NUM_THREADS=1 SCIPY_ARRAY_API=1 $(BIN)/pytest -n $(JOBS) tests/faults

# Creates .venv-lowest; the oldest Python that is supported.
lowest:
	JOBS=$(JOBS) $(PYTHON) .ci/lowest_versions.py

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/bench_graph.py
	$(BIN)/python benchmarks/bench_eigen.py
	$(BIN)/python benchmarks/bench_mixture.py
	$(BIN)/python benchmarks/bench_documents.py --growth yes
	$(BIN)/python benchmarks/bench_cuts.py
	$(BIN)/python benchmarks/bench_manifold.py --sizes 10000 200000
	$(BIN)/python benchmarks/bench_manifold.py --auto

# The page of results, from the archived records.
results: $(VENV)/.dev
	$(BIN)/python -m fiedler_papers.pages docs/results.md

# The site; a warning is an error. One BLAS thread, as the gallery's examples are too small for more.
docs: $(VENV)/.docs
	OMP_NUM_THREADS=1 $(BIN)/sphinx-build -q -W --keep-going docs docs/_build/html
	@echo "docs/_build/html/index.html"

# Regenerate the type stub from the registry.
stubs: $(VENV)/.dev
	$(BIN)/python .ci/write_stub.py

# Both distributions built twice: the builds must agree byte by byte, and the library's wheel stay below 1 MB.
wheel: $(VENV)/.dev
	$(BIN)/python .ci/build_twice.py

clean:
	rm -rf $(VENV) .venv-lowest out build dist .pytest_cache .mypy_cache .ruff_cache docs/_build docs/generated docs/gallery docs/estimators.rst docs/sg_execution_times.rst .import_linter_cache
