# make run    build of .venv what it needs, then the studies of config/config.yaml (CORES=2 bounds the cores)
# make test   build .venv, then the tests that every change should pass (ROOM=report: those of hdica/report and of what uses it;
#             PYTEST="-k store" narrows them further)
# make test-deep  build .venv, then all tests (DEEP=rest leaves out those of make test)
# make lint   build .venv, then formatters, linters, types and import contracts
# make bench  build .venv-bench with the rivals in it, then race them: the tables of docs/benchmarks.md
# make docs   build .venv-docs, then the site in build/docs/html: its cells run, and every warning is an error
# make slurm  build .venv-slurm, the environment for Slurm: .venv and the executor of Snakemake
# make lock   resolve pyproject.toml anew into requirements*.lock (needs uv)

# What is installed is compiled as it is first imported, which every process would do anew.
INSTALL := -m pip install --quiet --no-compile
unexport PYTHONDONTWRITEBYTECODE
PYTHON ?= python3
CORES ?= all
PYTEST ?=
ROOM ?=
DEEP ?=
BIN := .venv/bin
# The name carries what is installed, so a second call installs nothing and a changed lock does.
INSTALLED := .installed-$(shell cat requirements.lock pyproject.toml | cksum | tr ' ' '-')
STAMP := .venv/$(INSTALLED)
# The studies need two thirds of it.
ALL := .venv/.all-$(shell cat requirements.lock requirements-test.lock pyproject.toml | cksum | tr ' ' '-')
# What `make run` ends with, below all that Snakemake says of itself, names the folder of config/config.yaml.
RESULTS = $(or $(shell sed -n "s|^results: *[\"']*\([^\"'\# ]*[^\"'\# /]\).*|\1|p" config/config.yaml),results)
BENCH := .venv-bench
# On top of .venv: the Slurm executor, once installed, asks for a controller at every start of Snakemake, and few build the site.
SLURM := .venv-slurm
DOCS := .venv-docs
BELOW := import pathlib, sys, sysconfig; below = pathlib.Path(sysconfig.get_path("purelib"), "below.pth"); \
  below.write_text(f"import site; site.addsitedir({sys.argv[1]!r})\n")
ABOVE_STAMP := .installed-$(shell cat requirements*.lock pyproject.toml | cksum | tr ' ' '-')

.PHONY: env run test test-deep lint bench docs slurm lock
.DEFAULT_GOAL := env

define check_python
@command -v "$(PYTHON)" >/dev/null || { \
	  echo "hdica needs Python 3.11 or newer, and there is no $(PYTHON): install it or give PYTHON=/path/to/python3" >&2; exit 1; }
@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "hdica needs Python 3.11 or newer, and $(PYTHON) is $$("$(PYTHON)" --version 2>&1): give PYTHON=/path/to/python3" >&2; exit 1; }
@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "hdica needs the venv module of $(PYTHON): install it (on Debian and Ubuntu the package python3-venv)" >&2; exit 1; }
endef

env: $(ALL)

$(ALL): $(STAMP)
	@$(BIN)/python $(INSTALL) --require-hashes --no-deps -r requirements-test.lock
	@rm -f .venv/.all-*
	@touch $@

$(STAMP):
	$(check_python)
	@echo "installing into .venv: a minute or two, once"
	@"$(PYTHON)" -m venv .venv
	@$(BIN)/python $(INSTALL) --require-hashes -r requirements.lock
	@$(BIN)/python $(INSTALL) --no-deps --no-build-isolation --editable .
	@rm -f .venv/.installed-*
	@touch $@

run: $(STAMP)
	@$(BIN)/snakemake --cores $(CORES) --quiet all
	@echo "reports: $(RESULTS)/index.html"

test: env
	$(BIN)/python -m pytest -n auto -m "not deep" $(if $(ROOM),--room $(ROOM)) $(PYTEST)

test-deep: env
	$(BIN)/python -m pytest -n auto $(if $(DEEP),-m deep) $(if $(ROOM),--room $(ROOM)) $(PYTEST)

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/snakemake --lint

bench: $(BENCH)/$(INSTALLED)
	$(BENCH)/bin/python -m benchmarks --write

$(BENCH)/$(INSTALLED):
	$(check_python)
	@echo "installing the rivals into $(BENCH): a few minutes, once"
	@"$(PYTHON)" -m venv $(BENCH)
	@$(BENCH)/bin/python $(INSTALL) --require-hashes -r requirements.lock
	@$(BENCH)/bin/python $(INSTALL) --no-build-isolation --editable ".[benchmarks]"
	@rm -f $(BENCH)/.installed-*
	@touch $@

docs: $(DOCS)/$(ABOVE_STAMP)
	PATH="$(CURDIR)/$(DOCS)/bin:$$PATH" $(DOCS)/bin/python -m sphinx --fail-on-warning --keep-going --quiet --jobs auto \
	  -d build/docs/trees docs build/docs/html
	@echo "site: build/docs/html/index.html"

slurm: $(SLURM)/$(ABOVE_STAMP)

.venv-%/$(ABOVE_STAMP): | $(STAMP)
	@echo "installing into .venv-$*"
	@rm -rf .venv-$*
	@$(BIN)/python -m venv .venv-$*
	@.venv-$*/bin/python -c '$(BELOW)' "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
	@.venv-$*/bin/python $(INSTALL) --require-hashes --no-deps -r requirements-$*.lock
	@for one in dask hdica snakemake; do \
	  sed '1,2s|/$(BIN)/|/.venv-$*/bin/|' $(BIN)/$$one >.venv-$*/bin/$$one; chmod +x .venv-$*/bin/$$one; done
	@touch $@

COMPILE := uv pip compile pyproject.toml --python-version 3.11 --universal --generate-hashes --no-annotate --no-header --upgrade
# The others leave out what is in the first lock, but for what that has on some processors alone.
ABOVE = --constraint requirements.lock $$(sed -n '/platform_machine/d; s/^\([a-z0-9.-]*\)==.*/--no-emit-package \1/p' requirements.lock)

lock:
	$(COMPILE) --extra build --extra sweep --extra report --extra whiten --extra images --output-file requirements.lock
	$(COMPILE) --extra test --extra lint --extra tables $(ABOVE) --output-file requirements-test.lock
	$(COMPILE) --extra slurm $(ABOVE) --output-file requirements-slurm.lock
	$(COMPILE) --extra docs $(ABOVE) --output-file requirements-docs.lock
