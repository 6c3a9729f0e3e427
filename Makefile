# SPDX-License-Identifier: Apache-2.0
#
# The front door. CMake builds, tools/check.sh tests; this file only says which words start them.
# Settings: BUILD=folder, BUILD_TYPE=..., CMAKE_FLAGS=..., PREFIX=/usr/local, DESTDIR=, JOBS=N, KERNEL=...

BUILD       ?= build
BUILD_TYPE  ?= RelWithDebInfo
PREFIX      ?= /usr/local
JOBS        ?= $(shell nproc)
CMAKE_FLAGS ?=
GENERATOR   := $(if $(shell command -v ninja),Ninja,Unix Makefiles)

.DEFAULT_GOAL := all
.NOTPARALLEL:

all: $(BUILD)/CMakeCache.txt ## build everything into build/
	@cmake --build $(BUILD) --parallel $(JOBS)

product: $(BUILD)/CMakeCache.txt ## build the programs and the library, no tests
	@cmake --build $(BUILD) --parallel $(JOBS) --target product

$(BUILD)/CMakeCache.txt:
	@command -v cmake >/dev/null || { echo "cmake is missing: run 'make deps' first" >&2; exit 1; }
	@cmake -S . -B $(BUILD) -G "$(GENERATOR)" -DCMAKE_BUILD_TYPE=$(BUILD_TYPE) -DCMAKE_INSTALL_PREFIX=$(PREFIX) $(CMAKE_FLAGS)

demo: ## install what a build needs, build, and watch four simulated cards compute
	@tools/packages.sh build
	@$(MAKE) --no-print-directory product
	@tools/demo.sh $(BUILD)

deps: ## install every Debian package that building and testing need
	@tools/packages.sh all

check: deps ## run every rig this machine allows; the summary says what was skipped and why
	@tools/check.sh

check-unit: ## unit and contract tests, plain and under the sanitizers
	@tools/check.sh gcc asan tsan

check-daemon: ## the daemon on a private bus, with real clients
	@tools/check.sh daemon

check-service: ## the installed service under systemd in a container (root)
	@tools/check.sh service

check-vm: ## the kernel module on simulated cards in virtual machines (QEMU and kernels are fetched once)
	@tools/check.sh vm

check-debug: ## the module on a kernel with KASAN, lockdep, kmemleak and fault injection (built once, 12 minutes)
	@tools/check.sh debug

check-module: ## the module compiles for every kernel; sparse, checkpatch, pahole, dkms
	@tools/check.sh module

modules: ## build spanker.ko for the running kernel, or for KERNEL="6.1 6.12 7 debug"
	@for kernel in $(or $(KERNEL),running); do tools/vm/module.sh $$kernel || exit; done

check-static: ## formatting, licences, shell scripts, clang-tidy
	@tools/check.sh static tidy

fuzz: ## fuzz every parser, FUZZ_SECONDS=600 each, then the module in a guest, FUZZ_GUEST_SECONDS=3600
	@FUZZ_SECONDS=$${FUZZ_SECONDS:-600} tools/check.sh fuzz fuzz-vm

soak: ## the module under storms for hours in virtual machines, SOAK_ROUNDS=500 of each, at most SOAK_MINUTES=360 a machine
	@tools/check.sh soak

bench: all ## run the benchmarks; JSON in build/bench/
	@tools/bench.sh $(BUILD)

install: ## install under PREFIX (DESTDIR is honoured)
	@$(MAKE) --no-print-directory all
	@cmake -S . -B $(BUILD) -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null # the unit file names paths under PREFIX
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD)
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi

uninstall: ## remove what `make install` put there
	@test -f $(BUILD)/install_manifest.txt || { echo "nothing to remove: $(BUILD)/install_manifest.txt is missing" >&2; exit 1; }
	@while IFS= read -r file || [ -n "$$file" ]; do rm -fv -- "$(DESTDIR)$$file"; done < $(BUILD)/install_manifest.txt

clean: ## remove the build folders
	@rm -rf -- $(BUILD)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1: /p' $(firstword $(MAKEFILE_LIST)) | while IFS=: read -r word text; do printf '  make %-14s%s\n' "$$word" "$$text"; done

.PHONY: all product demo deps check check-unit check-daemon check-service check-vm check-debug check-module modules check-static fuzz soak bench install uninstall clean help
