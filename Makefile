# Everything a fresh machine needs is set up by the targets themselves: Python 3.11+, make and gcc suffice.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(VENV)/.uv
CORE := $(VENV)/.core
READY := $(VENV)/.ready

BEYOND := anytime people limits delta minimisation checks forecast contextual horizon

.PHONY: help demo test check docs reproduce studies format lock clean debian crash-test load-test studies-test memory-test day-test race-test fuzz notebooks wheel-test windows-test openapi

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(UV): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "surepick needs Python 3.11 or newer, found " + sys.version.split()[0] + "; set PYTHON=/path/to/python3")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep -o '^uv==[^ ]*' requirements.lock)"
	@touch $@

$(READY): $(UV) requirements.lock pyproject.toml experiments/pyproject.toml
	$(BIN)/uv pip sync --quiet --compile-bytecode --python $(BIN)/python requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable . --editable experiments
	@touch $@

# The demonstration needs a tenth of what development needs, so it does not wait for the rest.
$(CORE): $(UV) requirements.lock pyproject.toml
	$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint requirements.lock hatchling editables
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --constraint requirements.lock \
	  --no-build-isolation --editable '.[plots]'
	@touch $@

demo: $(if $(wildcard $(READY)),$(READY),$(CORE))  ## find a simulated person's favourite colour
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python examples/favourite_colour.py

# Two test processes on small matrices: threads inside BLAS would only get in their way.
test: check debian  ## run all checks and all tests
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --durations=10

# The service is tested on a real PostgreSQL, behind a real proxy and in a real browser. Without them, and without the right to install them,
# those tests are skipped.
debian:
	@missing=; \
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || missing="postgresql"; \
	command -v chromium >/dev/null || missing="$$missing chromium"; \
	command -v caddy >/dev/null || missing="$$missing caddy"; \
	if [ -n "$$missing" ] && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends $$missing \
	    || echo "$$missing could not be installed; tests that need it are skipped."; \
	fi

crash-test: $(READY) debian  ## kill the service 200 times and PostgreSQL 20 times under load from 50 judges
	OPENBLAS_NUM_THREADS=1 PYTHONPATH=tests/support $(BIN)/python tests/system/service_crash.py sqlite
	OPENBLAS_NUM_THREADS=1 PYTHONPATH=tests/support $(BIN)/python tests/system/service_crash.py postgresql

load-test: $(READY) debian  ## a judge's cycle at 50 and 200 judges, compared with a bare handler, on both databases
	OPENBLAS_NUM_THREADS=1 PYTHONPATH=tests/support $(BIN)/python tests/system/service_load.py sqlite
	OPENBLAS_NUM_THREADS=1 PYTHONPATH=tests/support $(BIN)/python tests/system/service_load.py postgresql

studies-test: $(READY) debian  ## the next question with 500 open studies on one PostgreSQL and two servers
	OPENBLAS_NUM_THREADS=1 PYTHONPATH=tests/support:tests/system $(BIN)/python tests/system/service_studies.py

memory-test: $(READY)  ## the memory of all processes over 100,000 answers
	OPENBLAS_NUM_THREADS=1 PYTHONPATH=tests/support $(BIN)/python tests/system/service_load.py sqlite --judges 50 --answers 100000

race-test: $(READY) debian  ## 100,000 contradicting requests at once, over workers whose clocks differ, on both databases
	OPENBLAS_NUM_THREADS=1 PYTHONPATH=tests/support $(BIN)/python tests/system/service_races.py sqlite
	OPENBLAS_NUM_THREADS=1 PYTHONPATH=tests/support $(BIN)/python tests/system/service_races.py postgresql

day-test: $(READY)  ## 200 studies with 24 simulated hours of judges coming and going
	OPENBLAS_NUM_THREADS=1 PYTHONPATH=tests/support $(BIN)/python tests/system/service_day.py

fuzz: $(READY)  ## certificates of both claims changed 10,000 times, and 300 made-up requests to every operation of the service
	OPENBLAS_NUM_THREADS=1 SUREPICK_MUTATIONS=10000 $(BIN)/pytest tests/certificate/test_mutations.py
	OPENBLAS_NUM_THREADS=1 SUREPICK_EXAMPLES=300 $(BIN)/pytest tests/service/test_schema.py

notebooks: $(READY)  ## run the notebooks of the examples and keep their outputs
	OPENBLAS_NUM_THREADS=1 $(BIN)/python docs/run_notebooks.py

wheel-test: $(READY)  ## build wheel and sdist, and find the best of forty prompts with each in clean environments
	PYTHONPATH=tests/support $(BIN)/python tests/system/wheel_trial.py

windows-test: $(READY) debian  ## the tests without termios, fork and nice, which Windows lacks
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --like-windows

openapi: $(READY)  ## write docs/openapi.json, the description of the service's API
	$(BIN)/python docs/make_openapi.py

check: docs  ## format, lint, types, layers and documentation only
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY)  ## build the documentation into out/docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs out/docs

reproduce: $(READY)  ## run every study of the paper, and write docs/reproduction.md
	OPENBLAS_NUM_THREADS=1 $(BIN)/python docs/make_reproduction.py

studies: $(READY)  ## run the studies beyond the paper
	@for study in $(BEYOND); do OPENBLAS_NUM_THREADS=1 $(BIN)/surepick study $$study || exit 1; done

format: $(READY)  ## format the sources
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: $(READY)  ## resolve the dependencies again into requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --all-extras --group dev --upgrade pyproject.toml experiments/pyproject.toml \
	  --no-emit-package surepick --output-file requirements.lock

clean:  ## remove everything the targets created
	rm -rf $(VENV) out .mypy_cache .ruff_cache .import_linter_cache
