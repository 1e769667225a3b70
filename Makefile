PYTHON ?= python3
PORT ?= 8000
BIN := .venv/bin
INSTALLED := .venv/installed
VLLM := .venv-vllm/bin
URL = $(BIN)/python -c "import pathlib; print(pathlib.Path('_build/html/index.html').resolve().as_uri())"

.PHONY: book test vllm-test serve lab notebooks clean

book: $(INSTALLED)
	$(BIN)/jupyter-book build . -W -n --keep-going
	@echo "open $$($(URL))"

test: $(INSTALLED)
	$(BIN)/pytest
	$(BIN)/pytest --nbval notebooks/

# A real vLLM without a GPU, in an environment of its own (about 3 GB): a split model against the whole one.
vllm-test: .venv-vllm/installed
	$(VLLM)/python -m pytest -m vllm tests/test_embed_vllm.py -rP

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
	  notebooks/*.ipynb

$(INSTALLED): requirements.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -r requirements.txt
	touch $@

.venv-vllm/installed: requirements-vllm.txt pyproject.toml
	test -x $(VLLM)/python || $(PYTHON) -m venv .venv-vllm
	$(VLLM)/python -m pip install --disable-pip-version-check --quiet --no-deps torch==2.13.0 \
	  --extra-index-url https://download.pytorch.org/whl/cpu
	$(VLLM)/python -m pip install --disable-pip-version-check --quiet --no-deps -r requirements-vllm.txt
	touch $@

clean:
	rm -rf _build .pytest_cache .hypothesis tests/screenshots
