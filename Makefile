# `make` alone lists the commands. The plain lines behind them are in README.md.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
BOOK   := _build/html/index.html

# Two threads everywhere, so that stored and repeated runs are alike; no progress bars in outputs.
export OMP_NUM_THREADS  ?= 2
RUN := D2LMINI_PROGRESS=0 $(BIN)/python

.DEFAULT_GOAL := help
.PHONY: help venv book pdf test lab run new-chapter exercises recall bench matrix publish-to wheel clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(STAMP) ## create .venv and install the pins (done by the others when needed)

$(STAMP): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; \
	  (3, 11) <= v <= (3, 13) or sys.exit("The pins need Python 3.11, 3.12 or 3.13; $(PYTHON) is %d.%d. " \
	  "Name another: make book PYTHON=python3.12" % v)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
	  rm -rf $(VENV); echo "Could not create $(VENV). On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --requirement requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

book: $(STAMP) ## build the HTML from the stored outputs
	$(BIN)/jupyter-book build . --all --warningiserror --nitpick --keep-going --quiet
	@echo "Open $(BOOK)"

pdf: book ## the whole book as one PDF, with contents and bookmarks (needs Chromium)
	$(RUN) -m tools.pdf

test: $(STAMP) ## unit tests, every notebook run again, the built book in a browser
	$(RUN) -m pytest --nbval --nbval-current-env

lab: $(STAMP) ## edit and run the chapters in JupyterLab
	$(BIN)/jupyter lab --notebook-dir=chapters

run: $(STAMP) ## run one chapter again in place: make run CH=02
	@ls chapters/$(CH)_*.ipynb >/dev/null 2>&1 || { echo 'Which chapter? For example: make run CH=02' >&2; exit 2; }
	$(RUN) -m tools.notebook run chapters/$(CH)_*.ipynb
	$(RUN) -m tools.notebook table
	$(RUN) -m tools.ledger

exercises: $(STAMP) ## write the chapters' exercises from the package into their notebooks, and test their checks
	$(RUN) -m tools.exercises --all
	$(RUN) -m d2lmini.exercises --mutants

recall: $(STAMP) ## write copies of the chapters to study without the answers, into build/recall
	$(RUN) -m tools.recall

new-chapter: $(STAMP) ## begin a chapter: make new-chapter NAME=08_mixtures
	$(RUN) -m tools.new_chapter '$(NAME)'

bench: $(STAMP) ## time and quality beside the published figures, from stored runs; make bench AGAIN=1 measures anew
	$(RUN) -m benchmarks $(if $(AGAIN),,--stored)

matrix: $(STAMP) ## the tests on every Python that is here, on old and new torch, and the chapters as on Colab (long)
	$(RUN) -m tools.matrix $(MATRIX)

publish-to: $(STAMP) ## say everywhere where the book lives: make publish-to URL=https://github.com/OWNER/REPO
	$(RUN) -m tools.publish '$(URL)' $(if $(BRANCH),--branch '$(BRANCH)') $(if $(SITE),--site '$(SITE)')

wheel: $(STAMP) ## build d2lmini's wheel and sdist into dist/
	$(RUN) -m tools.release

clean: ## remove what was built; .venv stays
	rm -rf _build build dist .pytest_cache *.egg-info
	find chapters d2lmini tests tools \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +
