# Everything a developer does, and nothing to install by hand first: `make help` lists it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
TORCH  := torch==2.13.0

# Most tests wait for a process that runs one thread, so several go at once; those of a file in turn.
AT_ONCE := -n auto --maxprocesses 4 --dist loadfile

NATIVE := $(wildcard native/*.cpp native/*.h native/CMakeLists.txt)
PAGE   := src/trnscope/server/static/index.html
PARTS  := $(wildcard explorer/*.json explorer/*.ts explorer/*.html) \
	$(shell find explorer/src explorer/public -type f 2>/dev/null)
CPP    := $(shell find native -name '*.cpp' -o -name '*.h' 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help demo demo-llama install test check lint bench bench-doctor docs picture screenshots fuzz format clean

help:  ## list what make can do
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | expand -t 14

demo: install  ## profile a small training run, then RMSNorm on a simulated Trainium
	@$(BIN)/trnscope demo
	@$(BIN)/trnscope study rmsnorm

demo-llama: install  ## make a small Llama faster by doing what the doctor says
	@$(BIN)/python examples/llama/story.py

install: $(VENV)/.trnscope $(PAGE)  ## make .venv with trnscope, its compiled scanner and the tools

# Two stamps: the packages change rarely, the compiled module with every edit of native/.
$(VENV)/.packages: pyproject.toml tools/preflight.sh
	@tools/preflight.sh $(PYTHON)
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
	@echo "trnscope: installing packages into $(VENV) (the first time takes minutes: torch is large)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check "$(TORCH)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check \
		"scikit-build-core>=0.10" "nanobind>=2.2" "cmake>=3.15,<5" ninja
	@$(BIN)/python tools/requirements.py | \
		$(BIN)/python -m pip install -qq --disable-pip-version-check -r /dev/stdin
	@touch $@

# No build isolation: the build then uses the packages above and never fetches torch again.
$(VENV)/.trnscope: $(VENV)/.packages $(NATIVE)
	@echo "trnscope: compiling the scanner"
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install -qq --disable-pip-version-check \
		--no-build-isolation --no-deps -e .
	@touch $@

# Without Node.js the script says so and makes nothing; all but `trnscope open` works.
$(PAGE): $(PARTS) tools/build_explorer.sh
	@tools/build_explorer.sh

test: install  ## run every test (needs no accelerator)
	@if [ -d explorer/node_modules ]; then cd explorer && npm run --silent test; fi
	@$(BIN)/python -m pytest $(AT_ONCE)

check: lint  ## lints and the fast tests
	@$(BIN)/python -m pytest -m "not slow" $(AT_ONCE)

lint: install  ## formatting, lints, types and layers
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@test -z "$(CPP)" || $(BIN)/clang-format --dry-run -Werror $(CPP)
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@if [ -d explorer/node_modules ]; then cd explorer && npm run --silent check; fi

format: install  ## rewrite the sources in the project's format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix -q .
	@test -z "$(CPP)" || $(BIN)/clang-format -i $(CPP)
	@if [ -d explorer/node_modules ]; then cd explorer && npm run --silent format; fi

bench: install  ## speed and memory on a generated 2 GB trace, against other readers
	@$(BIN)/python -m benchmarks

bench-doctor: install  ## the corpus of faults: how often the doctor is right (about half an hour; resumes)
	@$(BIN)/python -m benchmarks.doctor

docs: install  ## write the generated pages and pictures again
	@$(BIN)/python -m tools.make_docs

picture: install  ## draw the picture of the demo again, from a real run
	@$(BIN)/python -m tools.make_picture

screenshots: install  ## make the pictures of the Explorer again, from a run of the demo
	@$(BIN)/python -m tools.make_screenshots

fuzz:  ## fuzz the scanner under sanitizers (needs clang; FUZZ_SECONDS=60)
	@native/fuzz/run.sh $(or $(FUZZ_SECONDS),60) fuzz-out

clean:  ## remove what make made (the environment too)
	@rm -rf explorer/node_modules src/trnscope/server/static
	@rm -rf $(VENV) build fuzz-out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
