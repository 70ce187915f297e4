PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BACKEND ?=
ARCHITECTURES ?= attention+swiglu mamba+swiglu hyena+swiglu
# The tests start hundreds of processes, which would compile every module again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup mad native docs browser demo test kernels robustness quick lint stubs types wheels imports check bench clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | sort

NATIVE := hatch_build.py $(wildcard ember_ml/_native/build.py ember_ml/_native/src/*)

$(VENV)/.installed: pyproject.toml constraints.txt $(NATIVE)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[torch,mlx,cluster,audio,text,vision,tables,serve,tune,onnx,test]'
	$(BIN)/python tests/precompile_mlx.py
	touch $@

setup: $(VENV)/.installed ## create .venv with every backend and the test tools

$(VENV)/.package: pyproject.toml constraints.txt $(NATIVE)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/.package-%: $(VENV)/.package
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$*]'
	touch $@

mad: $(VENV)/.package $(if $(BACKEND),$(VENV)/.package-$(BACKEND)) ## compare three architectures; BACKEND=torch or mlx installs and uses that backend
	$(BIN)/ember $(if $(BACKEND),--backend $(BACKEND)) mad run $(ARCHITECTURES) --scale mini

native: ## build the C kernels of the source tree again
	$(PYTHON) ember_ml/_native/build.py

demo: setup ## run the same computation on every installed backend
	$(BIN)/python examples/demo.py

browser: ## install Chromium for the tests of the report, if apt-get can
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	    && apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	      apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	} || echo "Chromium is missing and cannot be installed here: its tests are skipped, or fail in CI"

test: setup browser ## run the tests on every backend
	$(BIN)/python -m pytest -n 3 --dist worksteal $(or $(ARGS),--ignore tests/distributed --ignore tests/kernels)
	$(if $(ARGS),,$(BIN)/python -m pytest tests/distributed) # in one worker: they start processes themselves

$(VENV)/.triton: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps triton
	touch $@

kernels: $(VENV)/.triton ## test the Triton kernels in the interpreter, and compile them for three GPUs
	TRITON_INTERPRET=1 $(BIN)/python -m pytest -n 2 tests/kernels $(ARGS)
	$(BIN)/python -m pytest tests/kernels/compiled
	$(BIN)/ember kernels check

# Tests outside of tests/robustness that run a sample of their rows or rounds in `make test`.
SAMPLED = $(shell grep -rl robustness.scale --include='test_*.py' tests/conformance tests/distributed tests/integration tests/unit)

robustness: setup ## run the long robustness tests: kills, random resumes, damaged files, concurrent writers, compilation and export of all modules
	EMBER_ROBUSTNESS=full $(BIN)/python -m pytest -n 2 tests/robustness $(SAMPLED) $(ARGS)

quick: setup ## run a sample of the tests in under 3 minutes
	$(BIN)/python -m pytest -n 2 --quick $(ARGS)

lint: setup ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

stubs: setup ## write the type stubs of the derived config classes and of create
	$(BIN)/python -m ember_ml.configs.stubs

types: setup ## type check the package, and user code against the built wheel
	$(BIN)/mypy
	$(BIN)/python tests/typing/check.py

wheels: setup ## build and test wheels with and without a C compiler
	$(BIN)/python tests/wheels/check.py

imports: setup ## check the import rules between packages
	$(BIN)/lint-imports

docs: setup ## build the documentation into site/
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

check: lint types wheels imports docs test kernels ## everything CI runs

bench: setup ## measure calls, gradients, training steps, import time, features and loaders against other libraries
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt autograd jax keras
	$(BIN)/python benchmarks/dispatch.py
	$(BIN)/python benchmarks/autodiff.py
	$(BIN)/python benchmarks/recurrence.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/import_time.py
	$(BIN)/python benchmarks/pipelines.py
	$(BIN)/python benchmarks/serving.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/kernels.py

clean: ## remove .venv and caches
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
