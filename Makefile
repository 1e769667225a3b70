PYTHON ?= python3
PORT ?= 8000
JOBS ?= 2
NOTEBOOKS ?= notebooks/*.ipynb
BIN := .venv/bin
INSTALLED := .venv/installed
VLLM := .venv-vllm/bin
LINES := .venv-vllm-lines/bin
URL = $(BIN)/python -c "import pathlib; print(pathlib.Path('_build/html/index.html').resolve().as_uri())"
PIP := -m pip install --disable-pip-version-check --quiet

# "yes" for an environment that can be used: whole, made here, and its Python starts and is new enough.
sound = $(shell test ! -e $(1)/making && grep -qsF '$(CURDIR)/$(1)/bin/' $(1)/bin/pip \
  && $(1)/bin/python -c 'import pip, sys; print("yes" if sys.version_info >= (3, 11) else "")' 2>/dev/null)
version = $(shell $(PYTHON) -c 'import sys; print("%d.%d.%d" % sys.version_info[:3] if sys.version_info < (3, 11) else "good")' 2>/dev/null)
refused = $(if $(version),Python $(version),no Python)
accepted = $(or $(filter good,$(version)),$(error PYTHON = $(PYTHON) is $(refused): it must be Python 3.11 or newer, as in make PYTHON=python3.12))
# Until `making` is gone an environment is half made. `anew` is never there: what needs it is made again.
environment = $(if $(call sound,$(1)),touch,$(if $(accepted),rm -rf $(1) && mkdir $(1) && touch $(1)/making && $(PYTHON) -m venv $(1) && touch)) $(1)/making

.NOTPARALLEL:
.PHONY: anew book test slow quick vllm-test vllm-lines serve lab notebooks clean

book: $(INSTALLED)
	$(BIN)/jupyter-book build . -W -n --keep-going
	@echo "open $$($(URL))"

# The book first: its pages are tested as they are now.
test: book
	$(BIN)/pytest -n $(JOBS) -m "not slow"
	$(BIN)/pytest --nbval notebooks/ -n $(JOBS) --dist loadfile

# Every recipe of CONTRIBUTING on a copy, and a second build of the book, byte for byte.
slow: book
	TPMODEL_CI=1 $(BIN)/pytest -n $(JOBS) -m slow

quick: $(INSTALLED)
	$(BIN)/ruff check -q
	$(BIN)/pytest -n $(JOBS) -m "not browser and not book and not slow and not thorough"

# A real vLLM without a GPU, in an environment of its own (about 3 GB): a split model against the whole one.
vllm-test: .venv-vllm/installed
	$(VLLM)/python -m pytest -m vllm tests/test_embed_vllm.py -rP

# vLLM's own start-up checks, without a GPU, on the lines that `plan` prints: in an environment of its own (about 2.7 GB).
vllm-lines: .venv-vllm-lines/installed
	$(LINES)/python -m pytest -m vllm_lines tests/test_vllm_lines.py

serve: $(INSTALLED)
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

lab: $(INSTALLED)
	$(BIN)/jupyter lab --ServerApp.root_dir=. --LabApp.default_url=/lab/tree/notebooks

# Run every notebook and store its outputs, without times, widget state and the version of Python.
notebooks: $(INSTALLED)
	TPMODEL_LIVE=still $(BIN)/jupyter nbconvert --to notebook --execute --inplace \
	  --ExecutePreprocessor.record_timing=False \
	  --ExecutePreprocessor.store_widget_state=False \
	  --ExecutePreprocessor.timeout=300 \
	  --ClearMetadataPreprocessor.enabled=True \
	  --ClearMetadataPreprocessor.clear_cell_metadata=False \
	  --ClearMetadataPreprocessor.preserve_nb_metadata_mask=kernelspec \
	  $(NOTEBOOKS)

$(INSTALLED): requirements.txt pyproject.toml $(if $(call sound,.venv),,anew)
	$(call environment,.venv)
	$(BIN)/python $(PIP) -r requirements.txt
	rm .venv/making && touch $@

.venv-vllm/installed: requirements-vllm.txt pyproject.toml $(if $(call sound,.venv-vllm),,anew)
	$(call environment,.venv-vllm)
	$(VLLM)/python $(PIP) --no-deps torch==2.13.0 --extra-index-url https://download.pytorch.org/whl/cpu
	$(VLLM)/python $(PIP) --no-deps -r requirements-vllm.txt
	rm .venv-vllm/making && touch $@

# The compiled parts are for a GPU: they go.
.venv-vllm-lines/installed: requirements-vllm-lines.txt pyproject.toml $(if $(call sound,.venv-vllm-lines),,anew)
	$(call environment,.venv-vllm-lines)
	$(LINES)/python $(PIP) --no-deps torch==2.13.0 --extra-index-url https://download.pytorch.org/whl/cpu
	$(LINES)/python $(PIP) --no-deps -r requirements-vllm-lines.txt
	find .venv-vllm-lines -path '*/site-packages/vllm/*' \( -name '*.so' -o -name vllm-rs \) -delete
	rm .venv-vllm-lines/making && touch $@

# Everything that .gitignore names.
clean:
	rm -rf .venv .venv-vllm .venv-vllm-lines _build tests/screenshots
	find . -name .git -prune -o \( -name __pycache__ -o -name .pytest_cache -o -name .hypothesis -o -name .ipynb_checkpoints \
	  -o -name '*.egg-info' \) -prune -exec rm -rf {} +
