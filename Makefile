# canter: `make study` measures, `make test` checks. Each line is a command that can be typed by hand.

# Where Cargo builds. Relative to this folder, so that its name may have spaces.
TARGET  := $(or $(CARGO_TARGET_DIR),target)
CANTER  := $(TARGET)/release/canter
LAB     := $(TARGET)/debug/canter lab --quiet
# Cargo starts every test program by this, so that it runs in the lab's guest.
IN_LAB   = CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="$(LAB) $(1) --"
BENCH_IN_LAB = CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="$(CANTER) lab --quiet --clock virtual --"
# A comma that call does not take for its own.
COMMA := ,
# The whole workspace even for one program: with -p, Cargo chooses other features of libraries, and builds all of it again.
TESTS := cargo test --workspace --locked
# One after the other, those that are not for the host.
ONLY_LAB := -- --ignored --test-threads=1

# What Debian has to provide; kernels are fetched by the lab itself and never installed.
PACKAGES := gcc libc6-dev make git qemu-system-x86 busybox-static iproute2 kmod zstd xz-utils can-utils \
  tshark tcpdump tmux python3-venv iputils-ping cpio

.PHONY: study study-all test test-all test-lines built test-host test-peers test-lab lab-gateway lab-routes lab-capture lab-wire lab-program \
  lab-conformance lab-canchar lab-bare lab-traffic lab-study lab-services test-adversary test-hosts test-bisect test-arm-host test-6.1 test-6.1-more test-python test-python-stress test-wheel test-arm test-arm-lab \
  miri test-bits test-kernel test-kernel-all test-checkpatch test-ynl test-debug-kernel fuzz-kernel test-dkms test-deb test-package lint lint-elsewhere lint-if-possible bench bench-python \
  soak fuzz baremetal wheel wheels deb deb-arm64 deb-armhf deb-dkms deb-source setup setup-deb setup-arm

study: setup
	cargo build --release --locked
	$(CANTER) study run 2014-fig4.1 2014-fig4.2 --out target/study

# Every figure and table of the papers; given again after an interruption, it goes on.
study-all: setup
	cargo build --release --locked
	$(CANTER) study run --all --out target/study-all

# Two at a time: first what is built and checked, since Cargo often has work for one processor only; then the tests, since a
# guest has one processor but where its line says otherwise, and those that take longest first. It ends with the number of
# tests that passed, failed and were skipped; a skip that tests/skips.txt does not allow fails it.
test:
	@tests/tally.py tests/skips.txt $(MAKE) --no-print-directory test-lines

test-lines: setup
	$(MAKE) --no-print-directory -j2 --output-sync=target built lint-if-possible target/python-can target/python-plugin target/vblf
	$(MAKE) --no-print-directory -j2 --output-sync=target test-host test-python test-kernel test-lab test-6.1 test-peers

# Everything, line by line: lines that passed on this commit are not repeated (tests/everything.py). LINES="…" chooses some; a
# shell's variable of that name is the height of its terminal.
EVERYTHING := test test-python-stress test-6.1-more test-kernel-all test-debug-kernel test-arm test-arm-lab test-arm-host test-deb test-dkms test-wheel test-package test-hosts test-bisect miri bench
# These too, as soon as this file has them.
EVERYTHING += $(filter test-checkpatch test-ynl fuzz,$(shell sed -n 's/^\([a-z-]*\):.*/\1/p' Makefile))
ifneq ($(origin LINES),command line)
LINES := $(EVERYTHING)
endif
test-all:
	@tests/everything.py "$(TARGET)/test-all" tests/skips.txt $(LINES)

test-host: built
	$(TESTS)

# Independent readers and writers of recordings; no CAN needed.
test-peers: built target/python target/python-can target/vblf
	target/python/bin/python -m pytest -q -p no:cacheprovider tests
	$(TESTS) --test convert_peers -- --ignored

# The longest first.
test-lab: lab-services lab-gateway lab-capture lab-wire lab-program lab-conformance lab-routes lab-canchar \
  lab-bare lab-traffic lab-study

# Every program, so that lines that run at once do not build at once.
built: setup
	$(TESTS) --no-run -q

lab-gateway: built
	$(call IN_LAB,) $(TESTS) --test gateway --test rules $(ONLY_LAB)

# A minute of waiting passes at once in the virtual clock.
lab-services: built
	$(call IN_LAB,--systemd --clock virtual --canchar virtual) $(TESTS) --test services $(ONLY_LAB)

lab-routes: built
	$(call IN_LAB,) $(TESTS) --test routes --test meter --test trouble $(ONLY_LAB)
	$(call IN_LAB,--bus wire) $(TESTS) --test doctor $(ONLY_LAB) --skip realtime
	$(call IN_LAB,--kernel 6.12-rt) $(TESTS) --test doctor $(ONLY_LAB) realtime

lab-capture: built
	$(call IN_LAB,--cpus 2) $(TESTS) --test capture --test capture_files \
	  --test capture_trouble --test capture_promise $(ONLY_LAB)

# The account of a recording under random harm, SEEDS of them from SEED on: some seconds each, so not a part of make test.
test-adversary: SEEDS := $(or $(SEEDS),20)
test-adversary: SEED := $(or $(SEED),1)
test-adversary: setup
	cargo build --release --locked
	CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="$(CANTER) lab --quiet --bus wire --clock virtual --timeout 600m -- env SEEDS=$(SEEDS) SEED=$(SEED)" \
	  $(TESTS) --release --test capture_adversary $(ONLY_LAB) --nocapture

lab-wire: built
	$(call IN_LAB,--bus wire --clock virtual) $(TESTS) --test wire --test gateway_wire \
	  --test capture_wire --test tour $(ONLY_LAB)

lab-program: built
	$(TESTS) --test lab --test bare_metal_image $(ONLY_LAB)

# The lab on Debian 13, in a chroot.
test-hosts: built
	@$(MAKE) --no-print-directory setup PACKAGES=mmdebstrap
	tests/host.sh trixie $(TARGET)/debug/canter $(TARGET)/hosts

# git bisect with the recipe of docs/report.md, on commits that are planted in a clone.
test-bisect: setup
	tests/bisect.sh $(TARGET)/bisect

lab-bare: built
	$(call IN_LAB,--bare-metal --bus probe --clock virtual) $(TESTS) --test bare_metal $(ONLY_LAB)

lab-conformance: built
	$(call IN_LAB,--fd-cards 2 --cpus 2 --bus wire) $(TESTS) --test conformance $(ONLY_LAB) --skip canchar
	$(call IN_LAB,--canchar virtual$(COMMA)0$(COMMA)1) $(TESTS) --test conformance $(ONLY_LAB) canchar
	$(call IN_LAB,--fd-cards 1) $(TESTS) --test netlink $(ONLY_LAB)
	$(call IN_LAB,) $(TESTS) --lib $(ONLY_LAB) uring

# Figures are compared in the virtual clock only.
lab-canchar: built
	$(call IN_LAB,--bus probe --canchar virtual$(COMMA)3$(COMMA)4) $(TESTS) --test canchar $(ONLY_LAB) --skip every_driver
	$(call IN_LAB,--bus probe --canchar virtual$(COMMA)3$(COMMA)4 --clock virtual) $(TESTS) --test canchar $(ONLY_LAB) \
	  every_driver

lab-traffic: built
	$(call IN_LAB,--clock virtual) $(TESTS) --test traffic $(ONLY_LAB)

lab-study: built
	$(call IN_LAB,--bus wire --net --clock virtual) $(TESTS) --test study $(ONLY_LAB)

test-6.1: built
	$(call IN_LAB,--kernel 6.1 --cpus 2) $(TESTS) --test capture $(ONLY_LAB)
	$(call IN_LAB,--kernel 6.1 --bus probe --canchar virtual$(COMMA)3$(COMMA)4) $(TESTS) --test canchar \
	  $(ONLY_LAB) --skip tools:: --skip every_driver

# What else has passed on 6.1 whenever it passed on 6.12; only make test-all runs it.
test-6.1-more: built
	$(call IN_LAB,--kernel 6.1) $(TESTS) --test gateway --test routes --test rules $(ONLY_LAB)
	$(call IN_LAB,--kernel 6.1 --bus probe --canchar virtual$(COMMA)3$(COMMA)4 --clock virtual) $(TESTS) --test canchar \
	  $(ONLY_LAB) every_driver

# Memory that the kernel shares and pointers that it is given, under Miri (rustup component add miri --toolchain nightly):
# cursors of packet rings, canchar rings and io_uring's buffers, a tap's ring, the inbox and its control messages, each on
# plain memory with a thread or a function in the kernel's place. What cannot run there: system calls, so neither mmap nor
# sockets nor io_uring itself, and the halves by which 32-bit Arm reads a word that is written as a whole.
miri:
	@cargo +nightly miri --version >/dev/null 2>&1 || \
	  { echo "make miri: Miri is missing: rustup component add miri --toolchain nightly" >&2; exit 1; }
	MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-permissive-provenance" cargo +nightly miri test --locked -p canter-io --lib -- \
	  sys:: tap:: capture_ring:: packet_ring:: canchar_ring:: uring::

# Layouts, parsers and the simulated bus on both Arm targets, by qemu-user; CAN itself needs a kernel.
test-arm: setup-arm
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -L /usr/aarch64-linux-gnu" \
	  cargo test --locked --target aarch64-unknown-linux-gnu -p canter-frame -p canter-io --lib --test notation
	CARGO_TARGET_ARMV7_UNKNOWN_LINUX_GNUEABIHF_LINKER=arm-linux-gnueabihf-gcc \
	CARGO_TARGET_ARMV7_UNKNOWN_LINUX_GNUEABIHF_RUNNER="qemu-arm-static -L /usr/arm-linux-gnueabihf" \
	  cargo test --locked --target armv7-unknown-linux-gnueabihf -p canter-frame -p canter-io --lib --test notation

# On an emulated arm64 board with five CAN cards: every method on every link, and the gateway.
ARM64 := CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
test-arm-lab: setup-arm built
	$(ARM64) cargo build --locked -p canter --target aarch64-unknown-linux-gnu
	$(ARM64) CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="$(LAB) --arch arm64 --share . --timeout 60m --" \
	  cargo test --locked --target aarch64-unknown-linux-gnu -p canter-io --test conformance $(ONLY_LAB) --skip canchar
	$(ARM64) CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="$(LAB) --arch arm64 --share . --timeout 60m --" \
	  cargo test --locked --target aarch64-unknown-linux-gnu -p canter --test gateway $(ONLY_LAB)

# The lab on an arm64 host: a guest in the lab's arm64 guest, ten minutes of a processor.
test-arm-host: setup-arm built
	$(ARM64) cargo build --locked -p canter --target aarch64-unknown-linux-gnu
	tests/host_arm64.sh $(TARGET)/debug/canter $(TARGET)/aarch64-unknown-linux-gnu/debug/canter $(TARGET)/hosts

# Debian packages: target/deb/. PROFILE=dev packs a build that is sooner there.
PROFILE ?= release
BUILT := $(if $(filter dev,$(PROFILE)),debug,$(PROFILE))
deb: setup-deb
	cargo build --locked -p canter --profile $(PROFILE)
	packaging/deb.sh canter $$(dpkg --print-architecture) $(TARGET)/$(BUILT)/canter $(TARGET)/$(BUILT)/canter target/deb

deb-arm64: setup-arm
	cargo build --locked -p canter
	$(ARM64) cargo build --locked -p canter --profile $(PROFILE) --target aarch64-unknown-linux-gnu
	packaging/deb.sh canter arm64 $(TARGET)/aarch64-unknown-linux-gnu/$(BUILT)/canter $(TARGET)/debug/canter target/deb

deb-armhf: setup-arm
	cargo build --locked -p canter
	CARGO_TARGET_ARMV7_UNKNOWN_LINUX_GNUEABIHF_LINKER=arm-linux-gnueabihf-gcc \
	  cargo build --locked -p canter --profile $(PROFILE) --target armv7-unknown-linux-gnueabihf
	packaging/deb.sh canter armhf $(TARGET)/armv7-unknown-linux-gnueabihf/$(BUILT)/canter $(TARGET)/debug/canter target/deb

# The source package, with its crates: dpkg-buildpackage builds it without a network. target/source/.
deb-source: setup-deb
	packaging/source.sh target/source

# Each package in target/deb: its files, its pages, its completions, its program where it runs; this machine's by apt, too.
# A whole drive by its service, with an upgrade meanwhile.
test-deb: deb deb-dkms built
	@$(MAKE) --no-print-directory setup PACKAGES=lintian
	lintian --fail-on error,warning target/deb/canter*.deb
	packaging/test.sh target/deb
	packaging/install.sh target/deb
	$(LAB) --systemd --timeout 20m -- packaging/drive.sh "$$(realpath target/deb/canter_*_$$(dpkg --print-architecture).deb)"

# The crates as a registry would have them: packed, unpacked into an empty folder, built and used from there.
test-package: setup
	packaging/crates.sh target/packages

# python-can's own tests on our back-end, and ours. Periods are judged in the virtual clock only.
test-python: built target/python-plugin target/python-can
	target/python-plugin/bin/pip install -q --disable-pip-version-check --force-reinstall --no-deps ./python
	$(LAB) -- python/tests/lab.sh "$(CURDIR)/target/python-can" -p as_socketcan test/back2back_test.py \
	  test/test_socketcan_loopback.py -k 'SocketCan and not duration'
	$(LAB) --canchar virtual,3 -- python/tests/lab.sh "$(CURDIR)/target/python-can" "$(CURDIR)/python/tests" \
	  -k 'not duration'
	$(LAB) --clock virtual -- python/tests/lab.sh "$(CURDIR)/target/python-can" -p as_socketcan \
	  test/test_cyclic_socketcan.py test/back2back_test.py -k 'Cyclic or SocketCan and duration'

# A minute of lost interfaces under threads that receive, send and ask; a few seconds of it are in test-python.
test-python-stress: built target/python-plugin target/python-can
	target/python-plugin/bin/pip install -q --disable-pip-version-check --force-reinstall --no-deps ./python
	$(LAB) --timeout 1h -- env CANTER_STRESS_ROUNDS=60 python/tests/lab.sh "$(CURDIR)/target/python-can" "$(CURDIR)/python/tests" \
	  -k notifier_senders

# What a frame costs a Python program, beside python-can's own back-end.
bench-python: setup target/python
	cargo build --locked
	target/python/bin/pip install -q --disable-pip-version-check --force-reinstall --no-deps ./python
	$(LAB) --clock virtual -- sh -c 'modprobe vcan; ip link add vcan0 type vcan; ip link set vcan0 up; \
	  sysctl -qw net.core.rmem_default=20000000; target/python/bin/python python/bench/cost.py && \
	  sysctl -qw net.core.rmem_default=212992 && exec target/python/bin/python python/bench/logger.py'

# A wheel for every Python from 3.10: target/wheels/.
wheel: target/python
	target/python/bin/maturin build --release --manifest-path python/Cargo.toml --out target/wheels

# Wheels for other people's machines, by zig's C library of glibc 2.17: target/wheels/. Each has the licences inside.
WHEEL_TARGETS := x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu armv7-unknown-linux-gnueabihf
wheels: target/python
	rustup target add $(WHEEL_TARGETS)
	target/python/bin/python -m pip install -q --disable-pip-version-check ziglang==$(ZIGLANG)
	for target in $(WHEEL_TARGETS); do PATH="$(CURDIR)/target/python/bin:$$PATH" target/python/bin/python -m maturin build --release \
	  --zig --target $$target --compatibility manylinux_2_17 --manifest-path python/Cargo.toml --out target/wheels || exit 1; done
	target/python/bin/python python/tests/wheels.py target/wheels
ZIGLANG := 0.17.1

# The wheel in every Python that is here, and the source distribution alone.
test-wheel: wheel
	python/tests/wheel.sh target/wheels
	python/tests/sdist.sh

# The kernel modules. test-bits needs nothing but gcc and Python; the rest runs in the lab, which fetches what it
# builds them against.
test-bits:
	mkdir -p target/canwire
	gcc -O2 -Wall -Wextra -Werror -o target/canwire/bits kernel/tests/bits.c kernel/canwire/bits.c
	kernel/tests/bits.py target/canwire/bits
	kernel/tests/fuzz/reports_test.py
	kernel/tests/guest_test.py

test-kernel: built test-bits
	kernel/tests/suite.sh short 6.12 6.1
	kernel/tests/fuzz/run.sh 6.12 seconds=60

# The modules by the kernel's own rules, and canwire by the kernel's netlink client; both take files from Debian's linux-source.
test-checkpatch:
	kernel/tests/checkpatch.sh

test-ynl: built
	kernel/tests/ynl.sh

test-kernel-all: setup test-bits
	cargo build --locked
	kernel/tests/suite.sh long 6.12 6.12-rt 6.1 6.1-rt

# The modules as a package that DKMS builds for each kernel; test-dkms installs it as root on an overlay, and loads them.
deb-dkms: setup-deb
	packaging/deb.sh canter-dkms target/deb

test-dkms: built
	kernel/dkms/test.sh 6.12

# On four kernels that find mistakes (kernel/tests/debug_kernel.sh), each of which takes ten minutes to build the first time:
# LINE=kasan, kcsan, ubsan or rt, CPUS=2 or 1; all of them unless given. What passed with the same sources is not repeated.
test-debug-kernel: setup
	cargo build --locked
	LINE="$(LINE)" CPUS="$(CPUS)" kernel/tests/debug_kernel.sh

# MINUTES (60) of the fuzzer on the same kernels. Results: target/fuzz/results/.
fuzz-kernel: setup
	cargo build --locked
	LINE="$(LINE)" CPUS="$(CPUS)" MINUTES="$(MINUTES)" SEED="$(SEED)" kernel/tests/debug_kernel.sh --fuzz

# The gateway without an operating system, both programs: target/baremetal/release/.
baremetal:
	cd baremetal && cargo build --release --locked --target-dir "$(CURDIR)/target/baremetal"

# Its own target folder: in that of the tests, Cargo would make one of two wait for the other.
lint: export CARGO_TARGET_DIR := $(TARGET)/lint
lint: lint-elsewhere
	cargo fmt --all --check
	cd baremetal && cargo fmt --check
	packaging/copyright.py --check
	@if cargo deny --version >/dev/null 2>&1; then cargo deny --locked check licenses bans sources; \
	else echo 'SKIPPED lint: no cargo-deny (cargo install --locked cargo-deny)'; fi
	cargo clippy --workspace --all-targets --locked -- -D warnings

# What other programs use compiles for other systems, without the features that need C.
ELSEWHERE := wasm32-unknown-unknown x86_64-pc-windows-gnu
lint-elsewhere:
	@for target in $(ELSEWHERE); do \
	  if [ -d "$$(rustc --print target-libdir --target $$target)" ] || timeout 600 rustup target add $$target 2>/dev/null; then \
	    echo "cargo check -p canter-frame -p canter-formats --no-default-features --target $$target"; \
	    RUSTFLAGS="-D warnings" cargo check --locked -q -p canter-frame -p canter-formats --no-default-features \
	      --target $$target || exit 1; \
	  else echo "SKIPPED lint: $$target: rustup target add does not work here"; fi; done

# A toolchain of the minimal profile has neither.
lint-if-possible:
	@if cargo clippy --version >/dev/null 2>&1 && cargo fmt --version >/dev/null 2>&1; then $(MAKE) lint; \
	else echo 'SKIPPED lint: this toolchain has no clippy or rustfmt (rustup component add clippy rustfmt)'; fi

bench: setup
	cargo build --release --locked
	$(CANTER) study run bench-syscalls bench-rules 2014-fig4.2 --out target/bench --again --ceilings
	$(BENCH_IN_LAB) cargo bench --locked -p canter-io --bench seam
	$(BENCH_IN_LAB) cargo bench --locked -p canter --bench record

# FRAMES frames (a million) through random rules, half of them each way: every one accounted for, and no more memory. And as
# many past character devices that are opened, filtered, interrupted and taken away meanwhile, on Debian's kernel and on those
# of test-debug-kernel (LINE, CPUS).
FRAMES ?= 1000000
soak: setup
	cargo build --release --locked
	CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="$(CANTER) lab --quiet --timeout 120m -- env SOAK_FRAMES=$$(($(FRAMES) / 2))" \
	  cargo test --release --locked -p canter --test rules -- --ignored --nocapture a_long_run
	CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="$(CANTER) lab --quiet --timeout 120m --canchar virtual$(COMMA)3$(COMMA)4 -- env SOAK_FRAMES=$(FRAMES)" \
	  cargo test --release --locked -p canter --test canchar -- --ignored --nocapture a_long_run
	CANTER="$$(realpath $(CANTER))" SOAK_FRAMES=$(FRAMES) LINE="$(LINE)" CPUS="$(or $(CPUS),2)" kernel/tests/debug_kernel.sh --soak

# Other people's readers of our files, pinned.
target/python: tests/requirements.txt
	rm -rf $@
	python3 -m venv $@
	$@/bin/pip install -q --disable-pip-version-check -r $< || { rm -rf $@; exit 1; }
	touch $@

# python-can with our plug-in and nothing else: beside asammdf it would import pandas, half a minute in a guest.
target/python-plugin: tests/requirements.txt
	rm -rf $@
	python3 -m venv $@
	$@/bin/pip install -q --disable-pip-version-check $$(grep -E '^(python-can|pytest)==' $<) || { rm -rf $@; exit 1; }
	touch $@

# All that a package takes besides Rust, on a Raspberry Pi as elsewhere.
setup-deb:
	@$(MAKE) --no-print-directory setup PACKAGES="gcc libc6-dev make dpkg-dev"

setup-arm:
	rustup target add aarch64-unknown-linux-gnu armv7-unknown-linux-gnueabihf
	$(MAKE) setup PACKAGES="gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-arm-linux-gnueabihf libc6-dev-armhf-cross qemu-user-static \
	  qemu-system-arm binutils-aarch64-linux-gnu binutils-arm-linux-gnueabihf"

# Its tests are in the source distribution only.
target/python-can: target/python
	rm -rf $@ && mkdir -p $@
	target/python/bin/pip download -q --disable-pip-version-check --no-deps --no-binary :all: -d $@ \
	  $$(grep '^python-can==' tests/requirements.txt)
	tar -xf $@/python_can-*.tar.gz -C $@ --strip-components=1
	touch $@

# Objects of Vector's files, in the tests of its source distribution.
target/vblf: target/python
	rm -rf $@ && mkdir -p $@
	target/python/bin/pip download -q --disable-pip-version-check --no-deps --no-binary :all: -d $@ \
	  $$(grep '^vblf==' tests/requirements.txt)
	tar -xf $@/vblf-*.tar.gz -C $@ --strip-components=1
	touch $@

# SECONDS of fuzzing for each reader of recordings, rule files and so on, or for READER only; fuzz/README.md has more.
fuzz:
	$(MAKE) setup PACKAGES=g++
	fuzz/run.sh $(or $(SECONDS),60) $(READER)

# Installs what is missing when it may, and says what to type when it may not.
setup:
	@missing=; for package in $(PACKAGES); do \
	  dpkg-query -W -f '$${Status}' $$package 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$package"; done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ]; then echo "setup: installing$$missing"; \
	  apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $$missing; \
	else echo "setup: missing packages; run: sudo apt-get install --no-install-recommends$$missing" >&2; exit 1; fi
