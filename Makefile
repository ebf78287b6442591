# Every target sets up what it needs under .venv/ and works on a fresh machine with Python 3.11 and make.
#
#   make demo                   bake the sample walk onto the sample person: a .blend, a report and a contact sheet in build/demo/
#   make test                   every test: what needs no Blender in plain Python, the rest on Blender 4.5 (BLENDER=5.0 for another)
#   make test T=tests/core      the tests in one file or folder; what CI runs in all is in .ci/run
#   make test-all               plain Python and every Blender
#   make check                  linter, formatter and types; `make format` fixes what can be fixed
#   make zip                    the extension, build/fabrik.zip
#   make test-zip               install the zip into an empty profile of every Blender and test the installed extension
#   make docs                   the documentation as a site with a search, in build/site; a broken link or picture is an error
#   make release                the zip, tested on every Blender, and the website with two channels to install it from, in SITE
#   make listing                pictures for extensions.blender.org in build/listing, and the film; needs FABRIK_GUI_TOOLS
#   make test-5.2               the Blender tests on 5.2; needs FABRIK_GUI_TOOLS, the folder of the tools for a real Blender
#   make test-gui               drive a real Blender with windows; needs FABRIK_GUI_TOOLS
#   make bench                  measure everything, into docs/bench; quarter of an hour. With FABRIK_GUI_TOOLS redraws of windows too
#   make bench T="drag natural"   only some parts, into build/bench; docs/bench follows once each part has a result
#   make bench-guard            whether what matters has become slower beside plain Python; a minute
#   make bench-paper            repeat the paper's experiments: tables and figures in docs/paper/, in a few minutes
#   make rigs                   build the sample rigs anew
#   make clean, make distclean  remove build/; and the environments too

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

# Scripts run with a profile of their own; the tests make themselves one.
export BLENDER_USER_RESOURCES := $(CURDIR)/build/profile
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# What has been compiled once is not compiled again by each process that a test starts, whatever the shell says.
export PYTHONDONTWRITEBYTECODE :=
# The matrices are small: a second thread only gets in the way, more so when two Blenders are tested at once.
export OPENBLAS_NUM_THREADS := 1

.DELETE_ON_ERROR:
.PHONY: help demo test test-plain test-all environments check format zip test-zip docs release listing test-5.2 test-gui test-zip-5.2 real-blender \
	bench bench-guard bench-paper rigs clean distclean $(BLENDERS:%=test-%) $(BLENDERS:%=test-zip-%)

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

# A Blender takes its own tests, and those of the solver that solve one pose: it does that with its mathutils.
on_blender = -m "blender or one_pose" tests/blender tests/core tests/paper

ifeq ($(T),)
test: test-$(BLENDER) test-plain
else
# In plain Python where that is enough and no Blender is asked for.
place = $(if $(or $(findstring command line,$(origin BLENDER)),$(findstring tests/blender,$(T))),$(BLENDER),plain)
test: $(call ready,$(place))
	$(call pytest,$(place)) $(T)
endif

test-plain: $(call ready,plain)
	$(call pytest,plain) tests --ignore=tests/gui

$(BLENDERS:%=test-%): test-%: $(call ready,%)
	$(call pytest,$*) $(on_blender)

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
build/fabrik.zip: __init__.py blender_manifest.toml LICENSE release/pack.py $(shell find fabrik_addon -type f -not -name '*.pyc') \
	$(call ready,$(BLENDER)) $(call ready,release)
	mkdir -p build
	$(call extension,$(BLENDER)) validate .
	$(call extension,$(BLENDER)) build --source-dir . --output-filepath $@
	$(call python,release) release/pack.py $@
	$(call extension,$(BLENDER)) validate $@

test-zip: $(BLENDERS:%=test-zip-%)

# What an installed extension could have lost: modules, files, names and wheels, from the solver to a baked file.
smoke = $(addprefix tests/blender/,test_extension.py test_registration.py posing/test_solve.py capture/test_import_markers.py \
	bake/test_bake.py)
$(BLENDERS:%=test-zip-%): test-zip-%: $(call ready,%) zip
	$(call pytest,$*) $(smoke) --extension-zip=build/fabrik.zip

docs: $(call ready,release)
	$(call python,release) -m sphinx --fail-on-warning --nitpicky --keep-going -q docs $(SITE)
	@echo "$(SITE)/index.html"

# The documentation and the channels, as one static website. An index names each zip that its channel holds.
release: docs zip test-zip test-zip-5.2
	$(call python,release) release/channels.py build/fabrik.zip $(SITE)
	$(call python,release) release/pack.py $(SITE)/*/*.zip
	for channel in $$(dirname $(SITE)/*/fabrik-*.zip); do $(call extension,$(BLENDER)) server-generate --html --repo-dir $$channel || exit 1; done
	@printf '\nLeft to a person:\n'; sed -n '/^## Left to a person/,/^## /{/^##/!p}' CONTRIBUTING.md

ifeq ($(FABRIK_GUI_TOOLS),)
test-5.2 test-gui test-zip-5.2 listing:
	@echo "$@: skipped; set FABRIK_GUI_TOOLS to the folder of the tools that start a real Blender"
else
# A Blender 5.2 in a Debian of its own, where a folder is seen when it is bound.
tools = $(abspath $(FABRIK_GUI_TOOLS))
data = $(wildcard $(or $(FABRIK_TEST_DATA),../shared/data))
inside = $(tools)/screenshot.sh --exec --limit 1800 --out $(CURDIR)/build/5.2 \
	$(foreach folder,$(CURDIR) $(realpath .venv) $(abspath $(data)),--bind $(folder)) -- \
	env OPENBLAS_NUM_THREADS=1 FABRIK_TEST_DATA=$(abspath $(data)) $(if $(CI),CI=$(CI))

# Its Python is another one than ours.
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
		-p no:cacheprovider $(PYTEST_ARGS) $(or $(T),$(on_blender))

test-zip-5.2: .venv/5.2/ready zip real-blender
	@mkdir -p build/5.2
	$(inside) BLENDER_USER_RESOURCES=/tmp/fabrik-profile blender -b --factory-startup --python $(CURDIR)/tests/run_in_blender.py -- $(realpath .venv)/5.2 \
		-p no:cacheprovider $(PYTEST_ARGS) $(smoke) --extension-zip=build/fabrik.zip

test-gui: $(call ready,plain) zip real-blender
	FABRIK_GUI_TOOLS=$(tools) $(call pytest,plain) tests/gui

listing: $(call ready,$(BLENDER)) zip real-blender
	mkdir -p build/listing
	$(tools)/screenshot.sh --out $(CURDIR)/build/listing --addon build/fabrik.zip --blend sample_rigs/human.blend \
		--size 1920x1080 --limit 1800 --drive release/listing.py
	$(call python,$(BLENDER)) -m pip install --quiet --group figures
	$(call python,$(BLENDER)) release/pictures.py build/listing docs/images/film.webp
endif

# The figures' plotting library joins the environment when somebody measures.
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
