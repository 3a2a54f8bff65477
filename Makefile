# `make help` lists the targets.

JOBS ?= $(shell nproc 2>/dev/null || echo 2)
SOAK_SECONDS ?= 600
FUZZ_SECONDS ?= 60
# CMAKE_ARGS adds to what a preset sets.
CMAKE_ARGS ?=

# Of `make sts`; ARGS adds to them or overrides them.
RECORDS ?= 1000000
FLOWS ?= 4
RANDOMNESS ?= 1
SEED ?= 1
ENGINES ?= stride,rocksdb,lmdb
DURABILITY ?= sync
REPEAT ?= 3
JSON ?= build/sts.json
PLOT ?= build/sts.svg
ARGS ?=

.DEFAULT_GOAL := build
.PHONY: help install install-tests build debug test asan tsan soak fuzz mutations sts peers deb wheel format clean distclean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16
	@echo 'SKIP_INSTALL=1 installs nothing and says what is missing; JOBS=N limits the compile jobs'

install: ## install the packages that are missing
	@.ci/install-packages build

install-tests:
	@.ci/install-packages build test bench python

# The Python package is built and tested where its own packages can be had.
# $(call python_arguments,GROUP): with another group of packages.
python_arguments = $(shell .ci/python-environment build test $(1) >&2 && \
  echo -DSTRIDE_PYTHON=ON -DPython_EXECUTABLE=$(CURDIR)/build/venv/bin/python || \
  echo "the Python package is left out" >&2)

# $(call build_preset,NAME,TARGETS,ARGUMENTS): configure and build; the programs go to build/NAME/bin.
define build_preset
	@! command -v ninja >/dev/null || [ -e build/$(1)/CMakeCache.txt ] || export CMAKE_GENERATOR=Ninja; \
	cmake --preset $(1) $(3) $(CMAKE_ARGS)
	@cmake --build build/$(1) -j $(JOBS) $(if $(2),--target $(2))
endef

build: install ## build the libraries and the programs into build/release/bin (the default)
	$(call build_preset,release,stridedb stridedb_static stride stride-bench)

debug: install-tests ## build all with assertions into build/debug/bin
	$(call build_preset,debug)

test: install-tests ## build and run the tests
	$(call build_preset,release,,$(call python_arguments))
	@JOBS=$(JOBS) tests/run release

asan: install-tests ## run the tests under AddressSanitizer and UndefinedBehaviorSanitizer, without those of stride-bench
	$(call build_preset,asan)
	@JOBS=$(JOBS) tests/run asan

# STRIDE_ALL_TESTS=1: all programs and tests.
tsan: install-tests ## run the tests of the libraries that have threads under ThreadSanitizer
	$(call build_preset,tsan,$(if $(STRIDE_ALL_TESTS),,storage_test engine_test c_test),\
	  -DSTRIDE_ALL_TESTS=$(if $(STRIDE_ALL_TESTS),ON,OFF))
	@JOBS=$(JOBS) tests/run tsan $(if $(STRIDE_ALL_TESTS),,-R '^(storage|engine|c)_test\.')

soak: install-tests ## run the long tests for SOAK_SECONDS each, then all tests under the sanitizers
	$(call build_preset,release,,$(call python_arguments,ray))
	@STRIDE_SOAK_SECONDS=$(SOAK_SECONDS) JOBS=1 tests/run release -L soak
	$(call build_preset,asan-all)
	@JOBS=$(JOBS) tests/run asan-all
	@STRIDE_ALL_TESTS=1 $(MAKE) --no-print-directory tsan
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=$(SOAK_SECONDS)

fuzz: ## run each fuzzer for FUZZ_SECONDS, built with clang; what they learn stays in build/fuzz/corpus
	@.ci/install-packages build test fuzz
	$(call build_preset,fuzz,files_fuzz history_fuzz import_fuzz shell_fuzz,\
	  -DCMAKE_C_COMPILER=clang-16 -DCMAKE_CXX_COMPILER=clang++-16)
	@JOBS=$(JOBS) tests/fuzz/run $(FUZZ_SECONDS)

mutations: install-tests ## plant bugs one by one and show that the named tests find each (NAMES=part of a name)
	@.ci/install-packages build test
	@JOBS=$(JOBS) CMAKE_ARGS="$(CMAKE_ARGS)" tests/mutations/run $(NAMES)

sts: ## run the STS workload beside RocksDB and LMDB (RECORDS=, FLOWS=, ENGINES=, ... ARGS=)
	@.ci/install-packages build bench
	$(call build_preset,release,stride-bench)
	build/release/bin/stride-bench sts --records $(RECORDS) --flows $(FLOWS) \
	  --randomness $(RANDOMNESS) --seed $(SEED) --engines $(ENGINES) --durability $(DURABILITY) \
	  --repeat $(REPEAT) --json $(JSON) --plot $(PLOT) $(ARGS)

deb: ## make Debian packages of the command, the library and the headers in build/
	@.ci/install-packages build deb
	$(call build_preset,release,stridedb stridedb_static stride stride_packaged)
	@adapters/package/debian/make-packages build/release build

wheel: ## make a wheel of the Python package in build/wheel, which runs wherever glibc is as new as here
	@.ci/install-packages build python
	@.ci/python-environment wheel
	@rm -f build/wheel/*.whl build/wheel/plain/*.whl
	@PATH=$(CURDIR)/build/venv/bin:$$PATH build/venv/bin/python -m pip wheel -q --no-deps --no-build-isolation \
	  -w build/wheel/plain .
	@PATH=$(CURDIR)/build/venv/bin:$$PATH build/venv/bin/python -m auditwheel repair -w build/wheel build/wheel/plain/*.whl

peers: ## build RocksDB in release mode for a fair comparison (minutes)
	@.ci/install-packages build peers
	@PEERS_JOBS=$(JOBS) benchmark/peers/build_rocksdb.sh

format: ## format the sources
	@.ci/install-packages format
	@git ls-files -co --exclude-standard '*.h' '*.cc' '*.cu' '*.cuh' | xargs -r clang-format -i

clean: ## remove what was built, except the peers
	@find build -mindepth 1 -maxdepth 1 ! -name peers -exec rm -rf {} + 2>/dev/null || true

distclean: ## remove all that was built
	@rm -rf build
