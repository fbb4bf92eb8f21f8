# One virtual environment serves every target; it is built on first use from constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# Three workers on two cores: tests that wait for a process or a page leave time to the others.
PYTEST := $(BIN)/python -m pytest -n 3 --dist worksteal
DEMO := .demo
HOOK := --jaxtyping-packages=regard,beartype.beartype

export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Images of containers forbid it; without it every process of every test compiles the package and the tests anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check viewer docs bench gpu soak clean

demo: $(READY)  ## train on the built-in English-Chinese grammar, translate a sentence, print its attention weights
	rm -rf $(DEMO)
	$(BIN)/regard train translate --train.max_steps=400 --out $(DEMO)
	@echo && echo "Tom chases Jerry" && echo
	@echo "Tom chases Jerry" | $(BIN)/regard predict $(DEMO) --beam 5 --align

test: $(READY)  ## everything that must hold; shapes are checked in the first run, compiling and exporting exclude that check
	$(PYTEST) $(HOOK) -m "not unhooked and not soak"
	$(PYTEST) -m "unhooked and not soak"

viewer: viewer/node_modules/.ready  ## check and build the page from its TypeScript; needs Node.js, which nobody else does
	cd viewer && npm run --silent check && npm run --silent build

check: $(READY)  ## ruff and mypy
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

docs: $(READY)  ## the API reference from the docstrings, into build/docs
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	$(BIN)/python -m sphinx -q -W --keep-going -j auto docs/api build/docs
	@echo "build/docs/index.html"

bench: $(READY)  ## speed and memory beside PyTorch, appended to benchmarks/results/
	$(BIN)/regard bench attention

gpu:  ## parity and benchmarks on a GPU, in under eight minutes; PYTHON needs torch and triton and nothing else
	$(PYTHON) benchmarks/gpu.py

soak: $(READY)  ## the long counts; on a GPU 2,000 random shapes and 250 repeats, without one a few in the interpreter
	$(PYTEST) $(HOOK) -m "soak and not unhooked"
	$(PYTEST) -m "soak and unhooked" --timeout 1200

clean:  ## remove the environment and the caches
	rm -rf .venv viewer/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis

# torch goes first: with its version pinned, nothing that comes later asks for another build of it. pip compiles on one core, and
# compileall on all; what it cannot compile (a template, a test of Python 2) is nobody's import.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-compile torch
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[test,dev]"
	-$(BIN)/python -m compileall -qq -j 0 .venv/lib
	touch $@

# npm ci refuses a lock file without the binaries of systems that the registry at hand does not carry; install takes the rest.
viewer/node_modules/.ready: viewer/package.json viewer/package-lock.json
	cd viewer && npm install --no-save --silent --no-audit --no-fund
	touch $@
