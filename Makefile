# canter: `make study` measures, `make test` checks. Each line is a command that can be typed by hand.

# Where Cargo builds. Relative to this folder, so that its name may have spaces.
TARGET  := $(or $(CARGO_TARGET_DIR),target)
# Not named CANTER: make would export that in place of the program that the gate hands to scripts.
RELEASE := $(TARGET)/release/canter
LAB     := $(TARGET)/debug/canter lab --quiet
# Cargo cannot reach the jobserver of a make -j, and would warn of it. (`+` before a recipe would give it to Cargo, and make -n
# would then run the recipe.)
WITHOUT_MAKE := env -u MAKEFLAGS -u MFLAGS
RUST_BUILD := $(WITHOUT_MAKE) cargo
# Tests compare what programs print without colours.
unexport CLICOLOR_FORCE
# Where `make dist` installs what it builds with.
DIST_TOOLS := target/dist-tools
# The whole workspace even for one program: with -p, Cargo chooses other features of libraries, and builds all of it again.
TESTS := $(RUST_BUILD) test --workspace --locked
# Cargo starts a test program by this, so that it runs in the lab's guest.
RUNNER := CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER

# What Debian has to provide; kernels are fetched by the lab itself and never installed.
PACKAGES := gcc libc6-dev make git qemu-system-x86 busybox-static iproute2 kmod zstd xz-utils can-utils \
  tshark tcpdump tmux python3-venv iputils-ping cpio
# And what only some lines need.
KERNEL_PACKAGES := flex bison bc libelf-dev libssl-dev
DEB_PACKAGES := gcc libc6-dev make dpkg-dev
ARM_PACKAGES := gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-arm-linux-gnueabihf libc6-dev-armhf-cross qemu-user-static \
  qemu-system-arm binutils-aarch64-linux-gnu binutils-arm-linux-gnueabihf

.PHONY: study study-all test test-all built test-adversary test-hosts test-bisect test-bisect-kernel test-arm built-arm64 test-arm-lab test-arm-host test-wheel test-fleet miri test-bits \
  test-kernel-all test-checkpatch test-ynl test-selftests test-debug-kernel fuzz-kernel test-dkms test-deb test-package lint lint-elsewhere lint-if-possible \
  bench bench-user-space bench-convert bench-model bench-python soak fuzz baremetal dist test-dist programs wheel wheels deb deb-arm64 deb-armhf deb-dkms deb-source setup setup-kernel setup-deb setup-arm

# Built without Parquet and by a profile of its own: most of the first time is spent compiling.
study: setup
	$(RUST_BUILD) build --profile quick --locked -p canter --no-default-features --features lab
	$(TARGET)/quick/canter study run 2014-fig4.1 2014-fig4.2 --out target/study

# Every figure and table of the papers; given again after an interruption, it goes on.
study-all: setup
	$(RUST_BUILD) build --release --locked
	$(RELEASE) study run --all --out target/study-all

# Each test module on the machine that its first line states, one more at a time than there are processors (xtask/).
# ONLY=capture: only modules whose name has this in it (canter::capture: this one); ONLY=wire::race: only tests. AGAIN=1:
# also what passed before with the same inputs.
test: setup
	@AGAIN="$(AGAIN)" $(RUST_BUILD) xtask test "$(ONLY)"

# Everything, for hours: goes on after a failure, and repeats nothing that passed with the same inputs. Packages are inputs:
# one that a line installed would change those of all lines before it.
test-all: PACKAGES += $(if $(ONLY),,$(KERNEL_PACKAGES) $(DEB_PACKAGES) $(ARM_PACKAGES) mmdebstrap lintian default-jre-headless g++)
test-all: setup
	@AGAIN="$(AGAIN)" $(RUST_BUILD) xtask test --all "$(ONLY)"

# Every program, for lines that use them.
built: setup
	$(TESTS) --no-run -q

# The account of a recording under random harm, SEEDS of them from SEED on: some seconds each, so not a part of make test.
test-adversary: SEEDS := $(or $(SEEDS),20)
test-adversary: SEED := $(or $(SEED),1)
test-adversary: setup
	$(RUST_BUILD) build --release --locked
	$(RUNNER)="$(RELEASE) lab --quiet --bus wire --clock virtual --timeout 600m -- env SEEDS=$(SEEDS) SEED=$(SEED)" \
	  $(TESTS) --release --test it -- --ignored --test-threads=1 --nocapture capture_adversary::

# The lab on Debian 13, in a chroot.
test-hosts: built-arm64
	@$(MAKE) --no-print-directory setup PACKAGES=mmdebstrap
	tests/host.sh trixie $(TARGET)/debug/canter $(TARGET)/aarch64-unknown-linux-gnu/debug/canter $(TARGET)/hosts

# git bisect with the recipe of docs/report.md, on commits that are planted in a clone.
test-bisect: setup
	tests/bisect.sh $(TARGET)/bisect

# git bisect with the recipe of docs/kernels.md, on commits that are planted in Debian's source of 6.12.
test-bisect-kernel: setup setup-kernel
	$(RUST_BUILD) build --locked
	tests/bisect_kernel.sh

# Memory that the kernel shares and pointers that it is given, under Miri:
# cursors of packet rings, canchar rings and io_uring's buffers, a tap's ring, the inbox and its control messages, each on
# plain memory with a thread or a function in the kernel's place. What cannot run there: system calls, so neither mmap nor
# sockets nor io_uring itself, and the halves by which 32-bit Arm reads a word that is written as a whole.
miri:
	@cargo +nightly miri --version >/dev/null 2>&1 || rustup toolchain install nightly --profile minimal -c miri -c rust-src
	MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-permissive-provenance" $(RUST_BUILD) +nightly miri test --locked -p canter-io --lib -- \
	  sys:: tap:: capture_ring:: packet_ring:: canchar_ring:: uring::

# Layouts, parsers and the simulated bus on both Arm targets, by qemu-user; CAN itself needs a kernel.
ARM64 := CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
ARMHF := CARGO_TARGET_ARMV7_UNKNOWN_LINUX_GNUEABIHF_LINKER=arm-linux-gnueabihf-gcc
ARM64_RUNNER := CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER
ARMHF_RUNNER := CARGO_TARGET_ARMV7_UNKNOWN_LINUX_GNUEABIHF_RUNNER
ON_ARM64 := $(ARM64) $(ARM64_RUNNER)="qemu-aarch64-static -L /usr/aarch64-linux-gnu" $(RUST_BUILD) test --locked --target aarch64-unknown-linux-gnu
ON_ARMHF := $(ARMHF) $(ARMHF_RUNNER)="qemu-arm-static -L /usr/arm-linux-gnueabihf" $(RUST_BUILD) test --locked --target armv7-unknown-linux-gnueabihf
test-arm: setup-arm
	$(ON_ARM64) -p canter-frame -p canter-io --lib
	$(ON_ARM64) -p canter-frame --test it notation::
	$(ON_ARMHF) -p canter-frame -p canter-io --lib
	$(ON_ARMHF) -p canter-frame --test it notation::

# The program for an arm64 guest, beside every program of this machine.
built-arm64: setup-arm built
	$(ARM64) $(RUST_BUILD) build --locked -p canter --target aarch64-unknown-linux-gnu

# On an emulated arm64 board with five CAN cards: every method on every link, and the gateway.
# (Cargo runs tests in their crate's folder.) The board has no FD cards, canchar or canwire.
IN_ARM64_LAB := $(ARM64) $(ARM64_RUNNER)="$(LAB) --arch arm64 --share ../.. --timeout 60m --" \
  $(RUST_BUILD) test --locked --target aarch64-unknown-linux-gnu
test-arm-lab: built-arm64
	$(IN_ARM64_LAB) -p canter-io --test it -- --ignored --test-threads=1 conformance --skip canchar \
	  --skip between_two_ctucanfd_cards --skip between_two_nodes_of_a_virtual_wire
	$(IN_ARM64_LAB) -p canter --test it -- --ignored --test-threads=1 gateway::

# The lab on an arm64 host: a guest in the lab's arm64 guest, ten minutes of a processor.
test-arm-host: built-arm64
	tests/host_arm64.sh $(TARGET)/debug/canter $(TARGET)/aarch64-unknown-linux-gnu/debug/canter $(TARGET)/hosts

# Debian packages: target/deb/. PROFILE=dev packs a build that is sooner there.
PROFILE ?= release
BUILT := $(if $(filter dev,$(PROFILE)),debug,$(PROFILE))
deb: setup-deb
	$(RUST_BUILD) build --locked -p canter --profile $(PROFILE)
	packaging/deb.sh canter $$(dpkg --print-architecture) $(TARGET)/$(BUILT)/canter $(TARGET)/$(BUILT)/canter target/deb

deb-arm64: setup-arm
	$(RUST_BUILD) build --locked -p canter
	$(ARM64) $(RUST_BUILD) build --locked -p canter --profile $(PROFILE) --target aarch64-unknown-linux-gnu
	packaging/deb.sh canter arm64 $(TARGET)/aarch64-unknown-linux-gnu/$(BUILT)/canter $(TARGET)/debug/canter target/deb

deb-armhf: setup-arm
	$(RUST_BUILD) build --locked -p canter
	$(ARMHF) $(RUST_BUILD) build --locked -p canter --profile $(PROFILE) --target armv7-unknown-linux-gnueabihf
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

# What a frame costs a Python program, beside python-can's own back-end.
bench-python: setup target/python
	$(RUST_BUILD) build --locked
	target/python/bin/pip install -q --disable-pip-version-check --force-reinstall --no-deps ./python
	$(LAB) --clock virtual -- sh -c 'modprobe vcan; ip link add vcan0 type vcan; ip link set vcan0 up; \
	  sysctl -qw net.core.rmem_default=20000000; target/python/bin/python python/bench/cost.py && \
	  sysctl -qw net.core.rmem_default=212992 && exec target/python/bin/python python/bench/logger.py'

# A wheel for every Python from 3.10: target/wheels/.
wheel: target/python
	target/python/bin/maturin build --release --manifest-path python/Cargo.toml --out target/wheels

# What a release consists of, in target/published: static programs, Debian packages, wheels with the program inside, sources,
# an SBOM and SHA256SUMS (packaging/dist.sh), each tried from an empty folder. (target/dist is Cargo's, for the profile of that name.)
dist: programs deb deb-arm64 deb-armhf deb-dkms wheels
	packaging/dist.sh $(DIST_TOOLS) target/published
	@$(MAKE) --no-print-directory setup PACKAGES=mmdebstrap
	packaging/try.sh target/published

# As a line of make test-all.
test-dist: dist

# Static programs for x86-64, aarch64 and armv7: target/TRIPLE/dist/canter; and this machine's without the laboratory, for its size:
# target/field/TRIPLE/dist/canter.
programs: $(DIST_TOOLS)
	$(WITHOUT_MAKE) packaging/programs.sh $(DIST_TOOLS)
	CARGO_TARGET_DIR=target/field TARGETS=$$(uname -m)-unknown-linux-musl $(WITHOUT_MAKE) packaging/programs.sh $(DIST_TOOLS) --no-default-features

# Another C compiler and its C libraries for all processors (zig), and what packs wheels and lists crates: from PyPI and crates.io.
$(DIST_TOOLS): packaging/tools.txt
	rm -rf $@
	python3 -m venv $@
	$@/bin/pip install -q --disable-pip-version-check -r $< || { rm -rf $@; exit 1; }
	CARGO_TARGET_DIR=$@/build $(RUST_BUILD) install -q --locked --root $@ cargo-cyclonedx@0.5.9 || { rm -rf $@; exit 1; }
	rm -r $@/build
	touch $@

# Wheels for other people's machines, by zig's C library of glibc 2.17: target/wheels/. Each has the licences inside.
WHEEL_TARGETS := x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu armv7-unknown-linux-gnueabihf
wheels: $(DIST_TOOLS)
	rm -f target/wheels/*.whl # one of `make wheel` is for this machine's Python
	rustup target add $(WHEEL_TARGETS)
	for target in $(WHEEL_TARGETS); do PATH="$(CURDIR)/$(DIST_TOOLS)/bin:$$PATH" $(WITHOUT_MAKE) maturin build --release \
	  --zig --target $$target --compatibility manylinux_2_17 --manifest-path python/Cargo.toml --out target/wheels || exit 1; done
	python3 python/tests/wheels.py target/wheels

# The wheel in every Python that is here, and the source distribution alone.
test-wheel: wheel
	python/tests/wheel.sh target/wheels
	python/tests/sdist.sh

# The questions of docs/fleet.md to three million frames whose answers are known, by DuckDB and by Spark on two processors.
test-fleet: built target/python target/spark
	target/python/bin/python crates/canter/tests/peers/fleet.py $(TARGET)/debug/canter target/fleet 3000000 \
	  duckdb target/spark/bin/spark-submit

# The kernel modules. test-bits needs nothing but gcc and Python; the rest runs in the lab, which fetches what it
# builds them against.
test-bits:
	mkdir -p target/canwire
	gcc -O2 -Wall -Wextra -Werror -o target/canwire/bits kernel/tests/bits.c kernel/canwire/bits.c
	kernel/tests/bits.py target/canwire/bits
	kernel/tests/fuzz/reports_test.py
	kernel/tests/guest_test.py

# The modules by the kernel's own rules, and canwire by the kernel's netlink client; both take files from Debian's linux-source.
test-checkpatch:
	kernel/tests/checkpatch.sh

test-ynl: built
	kernel/tests/ynl.sh

# The kernel's own tests of CAN, on vcan and on a node of canwire.
test-selftests: built
	kernel/tests/selftests.sh 7.3

test-kernel-all: setup test-bits
	$(RUST_BUILD) build --locked
	kernel/tests/suite.sh long 6.12 6.12-rt 6.1 6.1-rt 7.2 7.3 7.3-rt

# The modules as a package that DKMS builds for each kernel; test-dkms installs it as root on an overlay, and loads them.
deb-dkms: setup-deb
	packaging/deb.sh canter-dkms target/deb

test-dkms: built
	kernel/dkms/test.sh 6.12

# On four kernels that find mistakes (kernel/tests/debug_kernel.sh), each of which takes ten minutes to build the first time:
# LINE=kasan, kcsan, ubsan or rt, CPUS=2 or 1; all of them unless given. What passed with the same sources is not repeated.
test-debug-kernel: setup setup-kernel
	$(RUST_BUILD) build --locked
	LINE="$(LINE)" CPUS="$(CPUS)" kernel/tests/debug_kernel.sh

# MINUTES (60) of the fuzzer on the same kernels. Results: target/fuzz/results/.
fuzz-kernel: setup setup-kernel
	$(RUST_BUILD) build --locked
	LINE="$(LINE)" CPUS="$(CPUS)" MINUTES="$(MINUTES)" SEED="$(SEED)" kernel/tests/debug_kernel.sh --fuzz

# The gateway without an operating system, both programs: target/baremetal/release/.
baremetal:
	cd baremetal && $(RUST_BUILD) build --release --locked --target-dir "$(CURDIR)/target/baremetal"

# Formatting, licences, clippy; what .ci/run runs beside make test.
lint: lint-elsewhere
	$(RUST_BUILD) fmt --all --check
	for each in baremetal benches python; do (cd $$each && $(RUST_BUILD) fmt --check) || exit 1; done
	for each in baremetal benches fuzz python; do (cd $$each && cargo metadata --locked -q --format-version 1 > /dev/null) || exit 1; done
	packaging/copyright.py --check
	@if cargo deny --version >/dev/null 2>&1; then cargo deny --locked check licenses bans sources && \
	  for each in benches python; do \
	    cargo deny --locked --manifest-path $$each/Cargo.toml check --config deny.toml licenses bans sources || exit 1; done; \
	else echo 'SKIPPED lint: no cargo-deny (cargo install --locked cargo-deny)'; fi
	$(RUST_BUILD) clippy --workspace --all-targets --locked -- -D warnings
	$(RUST_BUILD) xtask prose

# What other programs use compiles for other systems, without the features that need C.
ELSEWHERE := wasm32-unknown-unknown x86_64-pc-windows-gnu
lint-elsewhere:
	@for target in $(ELSEWHERE); do \
	  if [ -d "$$(rustc --print target-libdir --target $$target)" ] || timeout 600 rustup target add $$target 2>/dev/null; then \
	    echo "cargo check -p canter-frame -p canter-formats --no-default-features --target $$target"; \
	    RUSTFLAGS="-D warnings" $(RUST_BUILD) check --locked -q -p canter-frame -p canter-formats --no-default-features \
	      --target $$target || exit 1; \
	  else echo "SKIPPED lint: $$target: rustup target add does not work here"; fi; done

# A toolchain of the minimal profile has neither.
lint-if-possible:
	@if $(RUST_BUILD) clippy --version >/dev/null 2>&1 && $(RUST_BUILD) fmt --version >/dev/null 2>&1; then $(MAKE) lint; \
	else echo 'SKIPPED lint: this toolchain has no clippy or rustfmt (rustup component add clippy rustfmt)'; fi

# Every figure that has a ceiling, in BOOTS boots each, and one table of all, also of what a part that failed has not measured.
# A bench's standard output is its table (HACKING.md).
BOOTS ?= 3
BENCH_STUDIES := bench-syscalls bench-rules bench-waits bench-buses 2014-fig4.2 probe-gateways probe-realtime wccd-fig6
bench: setup
	$(RUST_BUILD) build --release --locked
	mkdir -p target/bench
	rm -f target/bench/*.json target/bench/seam*.tsv target/bench/record*.tsv
	-for boot in $$(seq $(BOOTS)); do for each in canter-io/seam canter/record; do \
	  $(RUNNER)="$(RELEASE) lab --quiet --clock virtual --timeout 60m --" $(RUST_BUILD) bench -q --locked -p $${each%/*} --bench $${each#*/} \
	    > target/bench/$${each#*/}.boot$$boot.tsv; done; done
	-$(RELEASE) study run $(BENCH_STUDIES) --boots $(BOOTS) --out target/bench --again
	$(RELEASE) study ceilings target/bench

# What user space costs a frame, as ratios to memcpy of the same frames, on this machine: target/bench/user-space.tsv. ONLY=merge:
# only what has this in its name.
bench-user-space:
	$(RUST_BUILD) bench --locked --manifest-path benches/Cargo.toml --target-dir $(TARGET) -- "$(ONLY)"

# What converting a frame costs, beside tshark, log2asc and python-can.
bench-convert: setup target/python
	$(RUST_BUILD) build --release --locked
	PYTHON="$$(realpath target/python/bin)/python" && $(RELEASE) lab --quiet --clock virtual --timeout 20m -- \
	  env PYTHON="$$PYTHON" crates/canter/benches/convert.sh

# The model of `canter lab --cost desktop` against this machine: target/bench/model.tsv. ONLY=ring,rules: what belongs to them.
bench-model: setup
	$(RUST_BUILD) build --release --locked
	mkdir -p target/bench
	benches="$$($(RUST_BUILD) bench --locked --manifest-path benches/Cargo.toml --target-dir $(TARGET) --no-run \
	  --message-format json-render-diagnostics | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')" && \
	  python3 crates/canter/benches/model.py "$$(realpath $(RELEASE))" "$$benches" "$(ONLY)" > target/bench/model.tsv
	cat target/bench/model.tsv

# FRAMES frames (a million) through random rules, half of them each way, and through a recorder into files that are read
# meanwhile: every one accounted for, and no more memory. And as many past character devices that are opened, filtered,
# interrupted and taken away meanwhile. On Debian's kernel and on those of test-debug-kernel (LINE, CPUS).
FRAMES ?= 1000000
soak: setup setup-kernel
	$(RUST_BUILD) build --release --locked
	$(RUNNER)="$(RELEASE) lab --quiet --timeout 120m -- env SOAK_FRAMES=$$(($(FRAMES) / 2))" \
	  $(RUST_BUILD) test --release --locked -p canter --test it -- --ignored --nocapture rules::a_long_run
	$(RUNNER)="$(RELEASE) lab --quiet --timeout 120m --cpus 2 -- env SOAK_FRAMES=$(FRAMES)" \
	  $(RUST_BUILD) test --release --locked -p canter --test it -- --ignored --nocapture capture_long::
	$(RUNNER)="$(RELEASE) lab --quiet --timeout 120m --canchar virtual,3,4 -- env SOAK_FRAMES=$(FRAMES)" \
	  $(RUST_BUILD) test --release --locked -p canter --test it -- --ignored --nocapture canchar::soak::a_long_run
	CANTER="$$(realpath $(RELEASE))" SOAK_FRAMES=$(FRAMES) LINE="$(LINE)" CPUS="$(or $(CPUS),2)" kernel/tests/debug_kernel.sh --soak

# Other people's readers of our files, pinned.
target/python: tests/requirements.txt
	rm -rf $@
	python3 -m venv $@
	$@/bin/pip install -q --disable-pip-version-check -r $< || { rm -rf $@; exit 1; }
	touch $@

# Spark, which Java runs.
target/spark: tests/spark.txt
	@$(MAKE) --no-print-directory setup PACKAGES=default-jre-headless
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

# The plug-in's native module in that environment, built anew only when something that it is built of has changed.
NATIVE := $(shell find python/canter python/src python/Cargo.* python/pyproject.toml crates/canter-io crates/canter-frame \
  crates/canter-formats crates/canter-signals crates/sja1000 Cargo.* \
  -name '*.rs' -o -name '*.py' -o -name '*.toml' -o -name Cargo.lock)
target/python-plugin/native: $(NATIVE) target/python-plugin
	$(WITHOUT_MAKE) $(@D)/bin/pip install -q --disable-pip-version-check --force-reinstall --no-deps ./python
	touch $@

# All that a package takes besides Rust, on a Raspberry Pi as elsewhere.
# What a kernel's own build needs.
setup-kernel:
	@$(MAKE) --no-print-directory setup PACKAGES="$(KERNEL_PACKAGES)"

setup-deb:
	@$(MAKE) --no-print-directory setup PACKAGES="$(DEB_PACKAGES)"

setup-arm:
	rustup target add aarch64-unknown-linux-gnu armv7-unknown-linux-gnueabihf
	$(MAKE) setup PACKAGES="$(ARM_PACKAGES)"

# Its tests are in the source distribution only.
target/python-can: target/python
	rm -rf $@ && mkdir -p $@
	target/python/bin/pip download -q --disable-pip-version-check --no-deps --no-binary :all: -d $@ \
	  $$(grep '^python-can==' tests/requirements.txt)
	tar -xf $@/python_can-*.tar.gz -C $@ --strip-components=1
	$</bin/python -m compileall -q $@/can   # a guest would compile it for each process
	touch $@

# Objects of Vector's files, in the tests of its source distribution.
target/vblf: target/python
	rm -rf $@ && mkdir -p $@
	target/python/bin/pip download -q --disable-pip-version-check --no-deps --no-binary :all: -d $@ \
	  $$(grep '^vblf==' tests/requirements.txt)
	tar -xf $@/vblf-*.tar.gz -C $@ --strip-components=1
	touch $@

# Databases of signals: opendbc's, and those in the tests of cantools' source distribution.
target/databases: target/python
	rm -rf $@ && mkdir -p $@
	target/python/bin/pip download -q --disable-pip-version-check --no-deps --no-binary cantools -d $@ \
	  $$(grep -E '^(cantools|opendbc)==' tests/requirements.txt)
	tar -xf $@/cantools-*.tar.gz -C $@
	target/python/bin/python -m zipfile -e $@/opendbc-*.whl $@/opendbc
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
