PYTHON ?= python3
PORT ?= 8000
BIN := .venv/bin
INSTALLED := .venv/installed
URL = $(BIN)/python -c "import pathlib; print(pathlib.Path('_build/html/index.html').resolve().as_uri())"

.PHONY: book test serve lab notebooks clean

book: $(INSTALLED)
	$(BIN)/jupyter-book build . -W -n --keep-going
	@echo "open $$($(URL))"

test: $(INSTALLED)
	$(BIN)/pytest
	$(BIN)/pytest --nbval notebooks/

serve: $(INSTALLED)
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

lab: $(INSTALLED)
	$(BIN)/jupyter lab notebooks

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

clean:
	rm -rf _build .pytest_cache .hypothesis tests/screenshots
