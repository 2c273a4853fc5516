#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# debug_kernel.sh [--configure | --build | --soak | --fuzz]: Debian's 6.12 with what finds mistakes in a driver, and canwire,
# canchar, canprobe and canbare at work on it. The kernel's own mistakes that ended such a run are mended by the patches of
# kernel/upstream. Four kernels, the lines of a matrix: debug-kernel.config is common to them, debug-kernel-LINE.config says
# what the line finds:
#
#	kasan	memory used after it was freed or beyond its end; locks (KASAN, lockdep, PROVE_RAW_LOCK_NESTING)
#	kcsan	data races (KCSAN)
#	ubsan	undefined arithmetic, leaks, and calls whose allocations fail (UBSAN, kmemleak, fault injection)
#	rt	PREEMPT_RT with lockdep
#
# LINE (all of them), CPUS ("2 1") and PARTS ("functions canchar") choose; a part that passed with the same sources and
# kernel is not repeated unless AGAIN is set. The first run of a line builds its kernel in the lab's cache: ten minutes of
# two calm processors. Any report in the kernel's log fails its part.
#
# --configure and --build stop before and after that; --soak has nothing but SOAK_FRAMES frames each past devices that are
# opened, filtered, interrupted and unbound meanwhile, through random rules and into a recorder, by a release build of the
# tests; --fuzz nothing but MINUTES (60) of the fuzzer, from SEED.
set -e -o pipefail
tests=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$tests/../.." && pwd)
canter=${CANTER:-${CARGO_TARGET_DIR:-$root/target}/debug/canter}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/canter/debug-kernel
source=$cache/linux-source-6.12
patches=("$root"/kernel/upstream/*.patch)
done_folder=$root/target/debug-kernel/passed
only=$1
lines=${LINE:-kasan kcsan ubsan rt}

for line in $lines; do
	[ -f "$tests/debug-kernel-$line.config" ] || {
		echo "debug_kernel.sh: LINE=$line: there is kasan, kcsan, ubsan and rt" >&2
		exit 2
	}
done
missing=
for program in flex bison bc; do
	command -v $program >/dev/null || missing="$missing $program"
done
for package in libelf-dev libssl-dev; do
	dpkg-query -W -f '${Status}' $package 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -z "$missing" ] || {
	echo "debug_kernel.sh: missing:$missing (apt-get install --no-install-recommends flex bison bc libelf-dev libssl-dev)" >&2
	exit 1
}

fetch_source() {
	local key patch
	key=$(cat "${patches[@]}" | sha256sum)
	[ "$(cat "$source/patches" 2>/dev/null)" != "$key" ] || return 0
	mkdir -p "$cache"
	(cd "$cache" && apt-get download -q linux-source-6.12)
	rm -rf "$cache/new" && mkdir "$cache/new"
	dpkg-deb --fsys-tarfile "$cache"/linux-source-6.12_*.deb |
		tar xO ./usr/src/linux-source-6.12.tar.xz | tar xJ -C "$cache/new"
	for patch in "${patches[@]}"; do
		patch -s -p1 -d "$cache/new/linux-source-6.12" <"$patch"
	done
	echo "$key" >"$cache/new/linux-source-6.12/patches"
	rm -rf "$source"
	mv "$cache/new/linux-source-6.12" "$source"
	rmdir "$cache/new"
	rm "$cache"/linux-source-6.12_*.deb
}

# build_kernel LINE: in a folder of its own beside the sources, once for each configuration.
build_kernel() {
	local tree=$cache/$1 wanted key
	local configs=("$tests/debug-kernel.config" "$tests/debug-kernel-$1.config")
	key=$(cat "${configs[@]}" "${patches[@]}" | sha256sum)
	[ "$(cat "$tree/key" 2>/dev/null)" != "$key" ] || return 0
	mkdir -p "$tree"
	make -s -C "$source" O="$tree" tinyconfig
	# The script takes no path with spaces.
	cp "${configs[@]}" "$tree/"
	(cd "$tree" && "$source/scripts/kconfig/merge_config.sh" -m -O . .config "${configs[@]##*/}" >/dev/null)
	make -s -C "$tree" olddefconfig
	cat "${configs[@]}" | while read -r wanted; do
		case $wanted in
		CONFIG_* | '# CONFIG_'*) grep -qxF "$wanted" "$tree/.config" || echo "debug_kernel.sh: $1: not taken over: $wanted" >&2 ;;
		esac
	done
	[ "$only" != --configure ] || return 0
	# Warnings that are the kernel's own, hundreds of them, stay in the log.
	make -s -C "$tree" -j"$(nproc)" bzImage modules >"$tree/log" 2>&1 || { tail -20 "$tree/log" >&2; exit 1; }
	echo "$key" >"$tree/key"
}

# sources PATHS: what a part depends on: modules, programs and scripts, and the tests that are its own. Empty outside of a
# checkout: then nothing is remembered.
sources() {
	local command
	git -C "$root" rev-parse --is-inside-work-tree >/dev/null 2>&1 || return 0
	for command in 'ls-files -s' 'diff HEAD'; do
		git -C "$root" $command -- kernel crates baremetal Cargo.lock ':!kernel/tests' ':!crates/*/tests'
		git -C "$root" $command -- 'kernel/tests/*.sh' "$@"
	done | cat - "$cache/$line/key" | sha256sum | cut -c 1-32
}

# part NAME TESTS COMMAND...: once for these sources; a part that fails does not keep the others from running.
failed=
part() {
	local name=$line-$cpus-$1 key
	[[ " ${PARTS:-$1} " == *" $1 "* ]] || return 0
	key=$(sources $2)
	shift 2
	if [ -z "$AGAIN" ] && [ -n "$key" ] && [ "$(cat "$done_folder/$name" 2>/dev/null)" = "$key" ]; then
		echo "# $name: passed before with these sources (AGAIN=1 repeats it)"
		return
	fi
	echo "# $name"
	if "$@"; then
		mkdir -p "$done_folder"
		echo "$key" >"$done_folder/$name"
	else
		failed="$failed $name"
	fi
}

# in_lab OPTIONS WORDS: tests of the command line in that kernel.
in_lab() {
	local options=$1 word runner=
	shift
	# As a list: in a variable of the environment the words end at any space.
	for word in "$canter" lab --quiet --kernel "$cache/$line" --timeout 180m $options -- \
		env SLOWNESS=20 SOAK_FRAMES="${SOAK_FRAMES:-20000}"; do
		runner="$runner'$word', "
	done
	(cd "$root" && cargo test --config "target.x86_64-unknown-linux-gnu.runner=[$runner]" \
		--locked -p canter --test it $profile -- --ignored --test-threads=1 "$@")
}

# functions WORDS: of canwire, one by one. One of them needs a single processor: going under full traffic starves it.
functions() {
	local share=$root/target/debug-kernel
	"$tests/build.sh" "$share" "$cache/$line" >&2
	"$canter" lab --quiet --kernel "$cache/$line" --cpus "$cpus" --timeout 60m --share "$root/target" -- env \
		CANWIRE_MODULE="$share/$line/canwire.ko" PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$tests/functions.py" "$@"
}

# fuzz SECONDS: with failing calls first where the kernel has them.
fuzz() {
	local nth= slower=1
	[ "$line" != ubsan ] || nth=fail_nth=1
	# One processor would have time for nothing but the frames of buses at usual rates: 0.1 ms for each receiver with KASAN.
	# Divided by 128, programs make 190 calls a second.
	[ "$cpus" != 1 ] || slower=128
	"$tests/fuzz/run.sh" "$cache/$line" line="$line" cpus="$cpus" seconds="$1" patience=600 slower=$slower \
		seed="${SEED:-2014}" $nth
}

# upstream: the kernel's own mistakes are gone with our patches.
upstream() {
	"$canter" lab --quiet --kernel "$cache/$line" --cpus "$cpus" --timeout 20m -- sh -c "
		'$root/kernel/upstream/bit_rate.sh' can0 && /usr/bin/python3 '$root/kernel/upstream/packet_bypass.py'"
}

devices="--bus probe --canchar virtual,3,4"
all_parts() {
	local functions='kernel/tests :!kernel/tests/fuzz' rust=crates/canter/tests
	part upstream kernel/upstream upstream
	part fuzz kernel/tests/fuzz fuzz 120
	if [ "$cpus" = 1 ]; then part functions "$functions" functions -removal; else part functions "$functions" functions; fi
	# Without many processes that are no more of the module, bursts that such a kernel is too slow for, and figures.
	part canchar $rust in_lab "--cpus $cpus $devices" canchar:: canchar_drivers:: \
		--skip of_a_burst --skip interfaces_and_devices --skip what_a_frame_costs
	# Linux's one processor and canbare's are the two that these kernels take. By the virtual clock, in which no other
	# program takes canbare's processor.
	[ "$cpus" != 1 ] || part bare_metal $rust in_lab '--bare-metal --bus probe --clock virtual' bare_metal:: --skip it_is_as_fast
}

profile=
fetch_source
for line in $lines; do
	build_kernel "$line"
	for cpus in ${CPUS:-2 1}; do
		case $only in
		--configure | --build) break ;;
		--soak)
			profile=--release
			part soak crates/canter/tests in_lab "--cpus $cpus $devices" --nocapture canchar::soak::
			part soak-rules crates/canter/tests in_lab "--cpus $cpus" --nocapture rules::a_long_run
			part soak-recorder crates/canter/tests in_lab "--cpus $cpus" --nocapture capture_long::
			;;
		--fuzz) part "fuzz-${MINUTES:-60}" kernel/tests/fuzz fuzz $((60 * ${MINUTES:-60})) ;;
		'') all_parts ;;
		*) echo "debug_kernel.sh: $only: --configure, --build, --soak or --fuzz" >&2; exit 2 ;;
		esac
	done
done
[ -z "$failed" ] || { echo "debug_kernel.sh: failed:$failed" >&2; exit 1; }
