# Every target sets up what it needs. A second run finds it ready and starts at once.
PYTHON ?= python3
VENV   ?= .venv
RUN    := $(VENV)/bin/python
UV     := $(VENV)-uv/bin/uv
# In CI the versions of constraints.txt are installed, elsewhere the newest.
LOCKED := $(if $(CI),--constraint constraints.txt)

.DELETE_ON_ERROR:
.PHONY: help demo test test-oldest test-newest bcq test-spark test-browser bench soak coverage mutation figures dist docs web screenshots lint types check lock sbom audit clean

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

# Each has an environment of its own: what pyproject.toml allows at least, and the newest there is.
test-oldest test-newest: export OPENBLAS_NUM_THREADS = 1
test-oldest test-newest: export UV_PYTHON_DOWNLOADS = never
test-oldest: $(VENV)-lowest-direct/.ready  ## all tests with the oldest versions allowed
	@$(VENV)-lowest-direct/bin/python -m pytest -n auto --dist loadscope --no-loadscope-reorder
test-newest: $(VENV)-highest/.ready  ## all tests with the newest versions
	@$(VENV)-highest/bin/python -m pytest -n auto --dist loadscope --no-loadscope-reorder

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

# Shorter: make soak SHARE=0.1 MUTANTS=20000 TABLES=0:2000 KILLS=5 FUZZ_SEED=5 (share of examples and seeds,
# mutants of models, odd tables, kills of each command).
soak: $(VENV)/.ready-test  ## all tests with fifty times the examples, those marked soak too
	@SOAK=1 $(RUN) -m pytest -n auto --dist loadscope --no-loadscope-reorder -m 'not browser'

coverage: export OPENBLAS_NUM_THREADS = 1
coverage: $(VENV)/.ready-test  ## lines and branches that the tests run; build/coverage/html shows them
	@rm -rf build/coverage && mkdir -p build/coverage
	@$(RUN) -m coverage run -m pytest -n auto --dist loadscope --no-loadscope-reorder --junitxml build/coverage/tests.xml
	@$(RUN) -m coverage combine --quiet && $(RUN) -m coverage html --quiet --directory build/coverage/html
	@$(RUN) -m coverage report --skip-covered --show-missing

mutation: export OPENBLAS_NUM_THREADS = 1
mutation: build/coverage/data  ## whether tests notice changes of circuit/, infer/ and learn/: a sample
	@$(RUN) tests/mutation.py --mutants 300 --seed 0

build/coverage/data:
	@$(MAKE) coverage

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

lock: $(VENV)-uv/.ready  ## constraints.txt: the versions that CI installs
	@$(UV) pip compile --quiet --universal --upgrade --python-version 3.11 --no-header --no-annotate \
		--extra test --extra docs --extra browser --extra bench pyproject.toml --output-file constraints.txt

sbom: $(VENV)/.ready-demo $(VENV)-uv/.ready  ## what is installed with rspmn, as CycloneDX, in build/sbom.json
	@mkdir -p build && $(VENV)-uv/bin/cyclonedx-py environment --output-reproducible -o build/sbom.json $(VENV)

audit: $(VENV)-uv/.ready  ## known weaknesses of the locked versions, where their database can be reached
	@$(VENV)-uv/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip --strict

clean:           ## remove the environment and all that was built
	rm -rf $(VENV) $(VENV)-bcq $(VENV)-spark $(VENV)-uv $(VENV)-lowest-direct $(VENV)-highest build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

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

$(VENV)-uv/.ready:
	@echo "making $(VENV)-uv with uv, cyclonedx-bom and pip-audit"
	@$(PYTHON) -m venv $(VENV)-uv
	@$(VENV)-uv/bin/python -m pip install --quiet --disable-pip-version-check uv cyclonedx-bom pip-audit
	@touch $@

$(VENV)-lowest-direct/.ready $(VENV)-highest/.ready: $(VENV)-%/.ready: pyproject.toml | $(VENV)-uv/.ready
	@echo "making $(VENV)-$* with the versions of the $* resolution"
	@$(UV) venv --quiet --clear --python $(PYTHON) $(VENV)-$*
	@$(UV) pip install --quiet --python $(VENV)-$* --resolution $* --editable '.[test]'
	@touch $@

$(VENV)/.ready-%: pyproject.toml constraints.txt | $(RUN)
	@echo "installing rspmn[$*] into $(VENV)"
	@$(RUN) -m pip install --quiet --disable-pip-version-check $(LOCKED) --editable '.[$*]'
	@touch $@
