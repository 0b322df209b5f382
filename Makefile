# make demo    install into .venv and run the main job on real data
# make test    the same .venv with the test extra; PYTEST_ARGS adds options
# make lint    formatting, style, types, import contracts
# make doc     the documentation as HTML, in doc/_build/html
# make clean   remove .venv and everything built

PYTHON ?= python3
VENV ?= .venv
PYTEST_ARGS ?= -n auto

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt

# One stamp an extra: a second call installs nothing unless the requirements changed.
DEMO := $(VENV)/.installed-demo
TEST := $(VENV)/.installed-test
DOC := $(VENV)/.installed-doc

.PHONY: demo test lint doc clean

demo: $(DEMO)
	$(BIN)/python -m skdpgen.demo

test: $(TEST)
	$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: $(TEST)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict --follow-imports=silent --no-warn-unused-configs skdpgen/privacy
	$(BIN)/mypy
	$(BIN)/lint-imports

doc: $(DOC)
	rm -rf doc/api/generated  # pages of names that are gone would be warnings
	$(BIN)/python -m sphinx -W --keep-going -b html doc doc/_build/html

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "skdpgen needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

$(DEMO) $(TEST) $(DOC): $(VENV)/.installed-%: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[$*]'
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .coverage .coverage.* .*_cache
	rm -rf doc/_build doc/auto_examples doc/*/generated doc/sg_execution_times.rst
	find skdpgen tests doc benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
