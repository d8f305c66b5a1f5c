# Every target sets up what it needs. A second run finds it ready and starts at once.
PYTHON ?= python3
VENV   ?= .venv
RUN    := $(VENV)/bin/python

.DELETE_ON_ERROR:
.PHONY: help demo test bcq test-spark test-browser bench soak figures dist docs web screenshots lint types check clean

help:            ## list the targets
	@sed -n 's/^\([a-z-]*\): .*## /\1\t/p' $(MAKEFILE_LIST)

demo: $(VENV)/.ready-demo  ## the paper's 2x2 grid, decisions from a table, a policy from a log
	@$(RUN) examples/paper_grid.py
	@$(RUN) examples/oil_wildcatter.py
	@$(RUN) examples/frozen_lake.py

# One thread for linear algebra: the processes share the cores already.
test soak: export OPENBLAS_NUM_THREADS = 1
# Tests start Python some fifty times: what is compiled is kept, even if the shell says otherwise.
test soak: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/.ready-test  ## all tests and doctests, in as many processes as there are cores
	@$(RUN) -m pytest -n auto --dist loadscope --no-loadscope-reorder

# d3rlpy wants an old gymnasium and PyTorch, so it has an environment of its own.
bcq: $(VENV)-bcq/.ready  ## the tests of the deep-learning baseline, with d3rlpy
	@$(VENV)-bcq/bin/python -m pytest tests/reproduce/test_bcq.py tests/envs/test_gym.py tests/envs/test_mdp_env.py

# Spark wants Java 17 and half a gigabyte, so it has an environment of its own.
test-spark: $(VENV)-spark/.ready  ## the tests of Spark, local and on a cluster of two workers
	@$(VENV)-spark/bin/python -m pytest tests/spark

# Playwright drives the browser of the system; its own is not downloaded.
test-browser: export PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD = 1
test-browser: export OPENBLAS_NUM_THREADS = 1
test-browser: $(VENV)/.ready-browser  ## the page of a model in a real browser
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || test -n "$$CHROMIUM" || \
		{ apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium; } || \
		{ echo "no browser: install chromium, or set CHROMIUM to the path of one"; exit 1; }
	@$(RUN) -m pytest tests/browser -m browser

bench: $(VENV)/.ready-bench  ## benchmarks, as ratios in one run
	@for file in benchmarks/*.py; do echo "== $$file"; $(RUN) $$file || exit 1; done

soak: $(VENV)/.ready-test  ## all tests with twenty times the examples, those marked soak too
	@SOAK=1 $(RUN) -m pytest -n auto --dist loadscope --no-loadscope-reorder -m 'not browser'

figures: $(VENV)/.ready-test  ## the figures of docs/futures_figures.md, a quarter of an hour
	@$(RUN) benchmarks/futures.py --seeds 20 -o docs

dist: $(VENV)/.ready-test  ## wheel and sdist, installed and tried in an empty environment
	@$(RUN) -m build --outdir dist .
	@$(RUN) -m pytest -q -m soak tests/test_release.py

docs: export NO_MKDOCS_2_WARNING = 1
docs: export OPENBLAS_NUM_THREADS = 1
docs: $(VENV)/.ready-docs  ## the documentation site, in build/site: pages are run, warnings are errors
	@$(RUN) -m pytest tests/test_guides.py -m pages -n auto
	@$(RUN) -m mkdocs build --quiet
	@echo "build/site/index.html"

web: web/node_modules/.ready  ## build the page of `rspmn report` from the folder web
	@cd web && npm run --silent check && npm run --silent build

web/node_modules/.ready: web/package-lock.json
	@cd web && npm ci --silent && touch node_modules/.ready

screenshots: $(VENV)/.ready-browser  ## pictures of the page and of a terminal for docs/img
	@$(RUN) web/screenshots.py
	@$(RUN) web/terminal.py

lint: $(VENV)/.ready-test  ## ruff: rules and format
	@$(RUN) -m ruff check . && $(RUN) -m ruff format --check .

types: $(VENV)/.ready-test  ## mypy, strict
	@$(RUN) -m mypy

check: test lint types  ## everything CI runs

clean:           ## remove the environment and all that was built
	rm -rf $(VENV) $(VENV)-bcq $(VENV)-spark build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(RUN):
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if v >= (3, 11) else f"rspmn needs Python 3.11 or newer, but $(PYTHON) is {v[0]}.{v[1]}: make PYTHON=python3.11 ...")'
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)-bcq/.ready: pyproject.toml
	@echo "making $(VENV)-bcq with PyTorch and d3rlpy"
	@$(PYTHON) -m venv $(VENV)-bcq
	@$(VENV)-bcq/bin/python -m pip install --quiet --disable-pip-version-check 'torch==2.13.0'
	@$(VENV)-bcq/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[gym,plot]' 'd3rlpy>=2.8' pytest hypothesis pandas polars pyarrow
	@touch $@

$(VENV)-spark/.ready: pyproject.toml
	@command -v java >/dev/null || { echo "Spark needs Java 17 or newer: install it, and see that 'java' is found"; exit 1; }
	@echo "making $(VENV)-spark with PySpark"
	@$(PYTHON) -m venv $(VENV)-spark
	@$(VENV)-spark/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[spark]' pytest hypothesis 'pandas>=2.2,<3' polars
	@touch $@

$(VENV)/.ready-%: pyproject.toml | $(RUN)
	@echo "installing rspmn[$*] into $(VENV)"
	@$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@
