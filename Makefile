# Every target sets up what it needs under .venv/ and works on a fresh machine with Python 3.11 and make.
#
#   make demo                   bake the sample walk onto the sample person: a .blend, a report and a contact sheet in build/demo/
#   make test                   all tests on one Blender: make test BLENDER=5.0 (4.5 without it)
#   make test-core              what needs no Blender, in plain Python
#   make test-all               plain Python and every Blender
#   make check                  linter, formatter and types; `make format` mends what can be mended
#   make zip                    the extension, build/fabrik.zip
#   make test-zip               install the zip into an empty profile of every Blender and test what was installed
#   make test-gui               drive a real Blender with windows; needs FABRIK_GUI_TOOLS, the folder of the tools for it
#   make bench                  measure everything, into docs/bench; quarter of an hour. With FABRIK_GUI_TOOLS redraws of windows too
#   make bench-guard            whether what matters has become slower beside plain Python; a minute
#   make bench-paper            repeat the paper's experiments: tables and figures in docs/paper/, in a few minutes
#   make rigs                   build the sample rigs anew
#   make clean, make distclean  remove build/; and the environments too

BLENDERS := 4.5 5.0
BLENDER ?= 4.5
PYTHON ?= python3.11
FABRIK_GUI_TOOLS ?=
PYTEST_ARGS ?=
PIP_VERSION := 26.3

python = .venv/$(1)/bin/python
ready = .venv/$(1)/ready
pytest = $(call python,$(1)) -m pytest $(PYTEST_ARGS)

# Scripts run with a profile of their own; the tests make themselves one.
export BLENDER_USER_RESOURCES := $(CURDIR)/build/profile
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The matrices are small: a second thread only gets in the way, more so when two Blenders are tested at once.
export OPENBLAS_NUM_THREADS := 1

.DELETE_ON_ERROR:
.PHONY: help demo test test-core test-all check format zip test-zip test-gui bench bench-guard bench-paper \
	rigs clean distclean \
	$(BLENDERS:%=test-%) $(BLENDERS:%=test-zip-%)

help:
	@sed -n '/^#   make/s/^#   //p' Makefile

# An environment is made when it is missing or broken, and brought up to date when pyproject.toml has changed.
group = $(if $(filter $(BLENDERS),$(1)),blender-$(1),$(1))
.venv/%/ready: pyproject.toml
	@echo "setting up .venv/$*"
	@$(call python,$*) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv/$*
	@$(call python,$*) -m pip install --quiet pip==$(PIP_VERSION)
	@$(call python,$*) -m pip install --quiet --group $(call group,$*)
	@touch $@

demo: $(call ready,$(BLENDER))
	mkdir -p build/demo
	$(call python,$(BLENDER)) -m fabrik_addon bake sample_rigs/human.blend sample_rigs/walk.trc \
		--map sample_rigs/walk_map.json --output build/demo/walk.blend --report build/demo/walk.csv
	$(call python,$(BLENDER)) sample_rigs/contact_sheet.py build/demo/walk.blend build/demo/walk.png

test: test-$(BLENDER)

$(BLENDERS:%=test-%): test-%: $(call ready,%)
	$(call pytest,$*) tests --ignore=tests/gui

test-core: $(call ready,plain)
	$(call pytest,plain) tests --ignore=tests/gui

test-all: test-core $(BLENDERS:%=test-%)

check: $(call ready,check)
	$(call python,check) -m ruff check --output-format concise .
	$(call python,check) -m ruff format --check .
	$(call python,check) -m mypy

format: $(call ready,check)
	$(call python,check) -m ruff check --fix .
	$(call python,check) -m ruff format .

# What `blender --command extension` runs.
extension = $(call python,$(1)) .venv/$(1)/lib/python3.11/site-packages/bpy/*/scripts/addons_core/bl_pkg/cli/blender_ext.py
zip: $(call ready,$(BLENDER))
	mkdir -p build
	$(call extension,$(BLENDER)) validate .
	$(call extension,$(BLENDER)) build --source-dir . --output-filepath build/fabrik.zip
	$(call extension,$(BLENDER)) validate build/fabrik.zip

test-zip: $(BLENDERS:%=test-zip-%)

$(BLENDERS:%=test-zip-%): test-zip-%: $(call ready,%) zip
	$(call pytest,$*) tests/blender --extension-zip=build/fabrik.zip

test-gui: $(if $(FABRIK_GUI_TOOLS),$(call ready,plain) zip)
ifeq ($(FABRIK_GUI_TOOLS),)
	@echo "test-gui: skipped; set FABRIK_GUI_TOOLS to the folder of the tools that drive a Blender with windows"
else ifeq ($(wildcard tests/gui/test_*.py),)
	@echo "test-gui: skipped; there are no tests in tests/gui yet"
else
	$(FABRIK_GUI_TOOLS)/setup_gui_blender.sh
	FABRIK_GUI_TOOLS=$(abspath $(FABRIK_GUI_TOOLS)) $(call pytest,plain) tests/gui
endif

# The figures' plotting library joins the environment when somebody measures.
bench: $(call ready,$(BLENDER)) $(if $(FABRIK_GUI_TOOLS),zip)
	$(call python,$(BLENDER)) -m pip install --quiet --group figures
	$(if $(FABRIK_GUI_TOOLS),$(FABRIK_GUI_TOOLS)/setup_gui_blender.sh)
	FABRIK_GUI_TOOLS=$(abspath $(FABRIK_GUI_TOOLS)) $(call python,$(BLENDER)) benchmarks/run.py

bench-guard: $(call ready,$(BLENDER))
	$(call python,$(BLENDER)) benchmarks/guard.py

bench-paper: $(call ready,$(BLENDER))
	$(call python,$(BLENDER)) -m pip install --quiet --group figures
	$(call python,$(BLENDER)) benchmarks/paper/run.py

rigs: $(call ready,$(BLENDER))
	$(call python,$(BLENDER)) -m sample_rigs.build

clean:
	rm -rf build

distclean: clean
	rm -rf .venv
