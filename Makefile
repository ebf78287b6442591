# Each target sets up its environments under .venv/. A new machine needs Python 3.11 and make.
#
#   make demo                   bake the sample walk onto the sample person; the results are in build/demo/
#   make test                   run all tests, those with Blender on 4.5 (BLENDER=5.0 chooses another)
#   make test T=tests/core      run the tests in one file or folder; .ci/run runs everything that must pass
#   make test-all               run all tests, those of Blender on every one
#   make check                  check with the linter, the formatter and mypy; `make format` fixes what it can
#   make zip                    build the extension, build/fabrik.zip
#   make test-zip               install the zip into an empty profile of every Blender and test the installed extension
#   make docs                   build the documentation as a searchable site in build/site; broken links are errors
#   make release                build and test the zip on every Blender, and build the website with two channels in SITE
#   make listing                take pictures for extensions.blender.org, in build/listing, and the film; needs FABRIK_GUI_TOOLS
#   make test-5.2               run the Blender tests on 5.2; needs FABRIK_GUI_TOOLS, a folder with tools for a real Blender
#   make test-gui               run the tests that drive a real Blender with windows; needs FABRIK_GUI_TOOLS
#   make bench                  measure everything into docs/bench; with FABRIK_GUI_TOOLS also the redraws of windows
#   make bench T="drag natural"   measure some parts; docs/bench is written when every part has a result
#   make bench-guard            report what has become slower, relative to plain Python; takes a minute
#   make bench-paper            repeat the paper's experiments into docs/paper/; takes a few minutes
#   make rigs                   rebuild the sample rigs
#   make clean, make distclean  remove build/; distclean also removes the environments

BLENDERS := 4.5 5.0
BLENDER ?= 4.5
PYTHON ?= python3.11
FABRIK_GUI_TOOLS ?=
PYTEST_ARGS ?=
T ?=
SITE ?= build/site
PIP_VERSION := 26.3

python = .venv/$(1)/bin/python
ready = .venv/$(1)/ready
pytest = $(call python,$(1)) -m pytest $(PYTEST_ARGS)

# Scripts use this profile. The tests make their own.
export BLENDER_USER_RESOURCES := $(CURDIR)/build/profile
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Clear this variable to keep compiled modules: tests start many processes.
export PYTHONDONTWRITEBYTECODE :=
# The matrices are small. More threads only slow each other down.
export OPENBLAS_NUM_THREADS := 1

.DELETE_ON_ERROR:
.PHONY: help demo test test-plain test-all environments check format zip test-zip docs release listing test-5.2 test-gui test-zip-5.2 real-blender \
	bench bench-guard bench-paper rigs clean distclean $(BLENDERS:%=test-%) $(BLENDERS:%=test-zip-%)

help:
	@sed -n '/^#   make/s/^#   //p' Makefile

# Creates an environment if it is missing or broken, and updates it if pyproject.toml has changed.
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

# The oldest Blender runs all Blender tests, and the solver tests of one pose, because these use its mathutils. The others
# run the tests of what a version can change.
on_oldest = -m "blender or one_pose" tests/blender tests/core tests/paper
on_blender = $(if $(filter $(firstword $(BLENDERS)),$(1)),$(on_oldest),-m "not one_blender" tests/blender)

ifeq ($(T),)
test: test-$(BLENDER) test-plain
else
# Use plain Python if the tests need no Blender and no Blender was chosen.
place = $(if $(or $(findstring command line,$(origin BLENDER)),$(findstring tests/blender,$(T))),$(BLENDER),plain)
test: $(call ready,$(place))
	$(call pytest,$(place)) $(T)
endif

test-plain: $(call ready,plain)
	$(call pytest,plain) tests --ignore=tests/gui

$(BLENDERS:%=test-%): test-%: $(call ready,%)
	$(call pytest,$*) $(call on_blender,$*)

test-all: $(BLENDERS:%=test-%) test-plain

environments: $(foreach name,plain check release $(BLENDERS) $(if $(FABRIK_GUI_TOOLS),5.2),$(call ready,$(name))) \
	$(if $(FABRIK_GUI_TOOLS),real-blender)

check: $(call ready,check)
	$(call python,check) -m ruff check --output-format concise .
	$(call python,check) -m ruff format --check .
	$(call python,check) -m mypy

format: $(call ready,check)
	$(call python,check) -m ruff check --fix .
	$(call python,check) -m ruff format .

# The tool that `blender --command extension` runs.
extension = $(call python,$(1)) .venv/$(1)/lib/python3.11/site-packages/bpy/*/scripts/addons_core/bl_pkg/cli/blender_ext.py
zip: build/fabrik.zip
build/fabrik.zip: release/pack.py $(shell find fabrik_addon -type f -not -name '*.pyc') \
	$(call ready,$(BLENDER)) $(call ready,release)
	mkdir -p build
	$(call extension,$(BLENDER)) validate fabrik_addon
	$(call extension,$(BLENDER)) build --source-dir fabrik_addon --output-filepath $@
	$(call python,release) release/pack.py $@
	$(call extension,$(BLENDER)) validate $@

test-zip: $(BLENDERS:%=test-zip-%)

# These tests fail if the installed extension lacks a module, a file or a name.
smoke = $(addprefix tests/blender/,test_extension.py test_registration.py posing/test_solve.py capture/test_import_markers.py \
	bake/test_bake.py)
$(BLENDERS:%=test-zip-%): test-zip-%: $(call ready,%) zip
	$(call pytest,$*) $(smoke) --extension-zip=build/fabrik.zip

docs: $(call ready,release)
	$(call python,release) -m sphinx --fail-on-warning --nitpicky --keep-going -q docs $(SITE)
	@echo "$(SITE)/index.html"

# Builds one static website with the documentation and the channels. The index of a channel lists its zip.
release: docs zip test-zip test-zip-5.2
	$(call python,release) release/channels.py build/fabrik.zip $(SITE)
	$(call python,release) release/pack.py $(SITE)/*/*.zip
	for channel in $$(dirname $(SITE)/*/fabrik-*.zip); do $(call extension,$(BLENDER)) server-generate --html --repo-dir $$channel || exit 1; done
	@printf '\nLeft to a person:\n'; sed -n '/^## Steps that a person must do/,/^## /{/^##/!p}' CONTRIBUTING.md

ifeq ($(FABRIK_GUI_TOOLS),)
test-5.2 test-gui test-zip-5.2 listing:
	@echo "$@: skipped; set FABRIK_GUI_TOOLS to the folder of the tools that start a real Blender"
else
# Blender 5.2 runs in its own Debian system, which sees only the bound folders.
tools = $(abspath $(FABRIK_GUI_TOOLS))
data = $(wildcard $(or $(FABRIK_TEST_DATA),../shared/data))
inside = $(tools)/screenshot.sh --exec --limit 1800 --out $(CURDIR)/build/5.2 \
	$(foreach folder,$(CURDIR) $(realpath .venv) $(abspath $(data)),--bind $(folder)) -- \
	env OPENBLAS_NUM_THREADS=1 FABRIK_TEST_DATA=$(abspath $(data)) $(if $(CI),CI=$(CI))

# Blender 5.2 has another version of Python.
.venv/5.2/ready: pyproject.toml $(call ready,plain)
	@echo "setting up .venv/5.2"
	@rm -rf .venv/5.2
	@$(call python,plain) -m pip install --quiet --target .venv/5.2 --python-version 3.14 --only-binary=:all: --group test
	@touch $@

real-blender:
	$(tools)/setup_gui_blender.sh

test-5.2: .venv/5.2/ready real-blender
	@mkdir -p build/5.2
	$(inside) blender -b --factory-startup --python $(CURDIR)/tests/run_in_blender.py -- $(realpath .venv)/5.2 \
		-p no:cacheprovider $(PYTEST_ARGS) $(or $(T),$(call on_blender,5.2))

test-zip-5.2: .venv/5.2/ready zip real-blender
	@mkdir -p build/5.2
	$(inside) BLENDER_USER_RESOURCES=/tmp/fabrik-profile blender -b --factory-startup --python $(CURDIR)/tests/run_in_blender.py -- $(realpath .venv)/5.2 \
		-p no:cacheprovider $(PYTEST_ARGS) $(smoke) --extension-zip=build/fabrik.zip

test-gui: $(call ready,plain) zip real-blender
	FABRIK_GUI_TOOLS=$(tools) $(call pytest,plain) tests/gui

listing: $(call ready,$(BLENDER)) zip real-blender
	mkdir -p build/listing
	$(tools)/screenshot.sh --out $(CURDIR)/build/listing --bind $(CURDIR)/tests --addon build/fabrik.zip \
		--blend sample_rigs/human.blend --size 1920x1080 --limit 1800 --drive release/listing.py
	$(call python,$(BLENDER)) -m pip install --quiet --group figures
	$(call python,$(BLENDER)) release/pictures.py build/listing docs
endif

# The plotting library is needed only here.
bench: $(call ready,$(BLENDER)) $(if $(FABRIK_GUI_TOOLS),zip)
	$(call python,$(BLENDER)) -m pip install --quiet --group figures
	$(if $(FABRIK_GUI_TOOLS),$(FABRIK_GUI_TOOLS)/setup_gui_blender.sh)
	FABRIK_GUI_TOOLS=$(abspath $(FABRIK_GUI_TOOLS)) $(call python,$(BLENDER)) benchmarks/run.py $(T)

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
