# make demo    harvest the sample sites: needs nothing but Python 3.11 or later; ARGS=--serve: open the console on them
# make quick   run the unit tests and one scenario of each kind, in about a minute
# make test    run the tests, six at a time, as most of them wait for something; ARGS=tests/sources: one room, two at a time;
#              ARGS="-n 0 -k word": one at a time, some; a service that is not there skips its tests, unless REQUIRE_SERVICES=1
# make check   lint, type-check, see that imports point downwards and that no expression takes long over foreign text
# make bench   measure: all benchmarks, or ARGS="full-night --scale 0.1"; ARGS="full-night --against COMMIT": in turn with
#              that state of the program; needs nginx-light, curl, libxml2-utils
# make fuzz    fuzz for as long as one likes: ARGS="lists", "documents", "repositories"…, and libFuzzer's options
# make pictures  make the pictures in docs/images again: terminals, and reports and pages of the console if Chromium is there
# make site    the documentation as a site, in site/
# make docs    write what is made from the code: docs/rules.md, docs/settings.md, docs/commands.md, docs/openapi.json, sql/ddl/*.sql, the picture in docs/architecture.md

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	if $$p -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$p; break; fi; done)
VENV ?= .venv
BIN := $(VENV)/bin
FOLDER ?=

# Bytecode is kept, whatever the environment says: the tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo quick test check bench fuzz docs pictures site clean

demo: $(VENV)/installed
	$(BIN)/metaharvest demo $(if $(FOLDER),--folder $(FOLDER)) $(ARGS)

quick: $(VENV)/installed-dev
	$(BIN)/python -m pytest --quiet --quick --numprocesses=3 --dist=worksteal $(ARGS)

test: $(VENV)/installed-dev
	cd tests && $(abspath $(BIN))/python -m support.gmn
	$(BIN)/python -m pytest --numprocesses=$(if $(filter tests/%,$(ARGS)),2,6) --dist=worksteal $(ARGS)

check: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo
	cd tests && $(abspath $(BIN))/python -m lint.foreign_text

bench: $(VENV)/installed
	$(BIN)/python -m benchmarks $(ARGS)

fuzz: $(VENV)/installed-dev
	$(BIN)/python -m pip install --quiet --group fuzz
	cd tests && $(abspath $(BIN))/python -m fuzz $(ARGS)

docs: $(VENV)/installed-dev
	$(BIN)/python -m metaharvest.rules > docs/rules.md
	for database in sqlite postgresql mariadb; do \
		$(BIN)/python -m metaharvest.database.ddl $$database > sql/ddl/$$database.sql || exit 1; done
	$(BIN)/python docs/draw_house.py docs/architecture.md
	$(BIN)/python docs/reference.py settings > docs/settings.md
	$(BIN)/python docs/reference.py commands > docs/commands.md
	$(BIN)/python -m metaharvest.web.api.openapi docs/schemas > docs/openapi.json

pictures: $(VENV)/installed-dev
	$(BIN)/python docs/pictures.py

site: $(VENV)/installed-dev
	$(BIN)/python -m mkdocs build --strict

clean:
	rm -rf $(VENV) build dist site

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "metaharvest needs Python 3.11 or later with its venv module; none was found."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/installed: pyproject.toml $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[web,pipeline]'
	$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/installed-dev: pyproject.toml $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[web,pipeline]' --group dev
	$(BIN)/python -m compileall -q src
	@touch $(VENV)/installed $@
