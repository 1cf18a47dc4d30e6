# make demo   environment, a sampler trained in about two minutes, estimate beside truth, report.html
# make test   environment if missing, the whole test suite

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp

.PHONY: demo test lint types docs check mutants kills bench clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/python examples/demo.py

test: $(STAMP)
	$(BIN)/python -m pytest

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/mutants.py --check

types: $(STAMP)
	$(BIN)/mypy

docs: $(STAMP)
	$(BIN)/python tools/check_docs.py

mutants: $(STAMP)
	$(BIN)/python tools/mutants.py

kills: $(STAMP)
	$(BIN)/python tools/kill_and_resume.py

bench: $(STAMP)
	$(BIN)/python benchmarks/steps.py

check: lint types docs test

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache build dist src/*.egg-info
