#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# debug_kernel.sh [--configure | --soak]: builds Debian's 6.12 with KASAN, lockdep and what else finds mistakes in a driver
# (debug-kernel.config), once and in the lab's cache, then puts canwire, canchar, canprobe and canbare to work on it, and some
# frames (SOAK_FRAMES, 20000 unless given) past devices that are opened, filtered, interrupted and unbound meanwhile. Any
# report of KASAN or lockdep in the kernel's log fails a test. --configure stops before the build, which takes ten minutes of
# two calm processors; --soak does nothing but those frames, with a release build of the test.
set -e -o pipefail
tests=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$tests/../.." && pwd)
canter=${CANTER:-${CARGO_TARGET_DIR:-$root/target}/debug/canter}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/canter/debug-kernel
tree=$cache/linux-source-6.12
key=$(sha256sum <"$tests/debug-kernel.config")
for program in flex bison bc; do
	command -v $program >/dev/null || { echo "debug_kernel.sh: $program is missing: apt-get install flex bison bc libelf-dev" >&2; exit 1; }
done
if [ ! -f "$tree/Makefile" ]; then
	mkdir -p "$cache"
	(cd "$cache" && apt-get download -q linux-source-6.12)
	rm -rf "$tree" "$cache/new" && mkdir "$cache/new"
	dpkg-deb --fsys-tarfile "$cache"/linux-source-6.12_*.deb |
		tar xO ./usr/src/linux-source-6.12.tar.xz | tar xJ -C "$cache/new"
	mv "$cache/new/linux-source-6.12" "$tree"
	rmdir "$cache/new"
	rm "$cache"/linux-source-6.12_*.deb
fi
if [ "$(cat "$cache/key" 2>/dev/null)" != "$key" ]; then
	make -s -C "$tree" tinyconfig
	"$tree/scripts/kconfig/merge_config.sh" -m -O "$tree" "$tree/.config" "$tests/debug-kernel.config" >/dev/null
	make -s -C "$tree" olddefconfig
	while read -r line; do
		case $line in
		'' | '# '[^C]*) ;;
		*) grep -qxF "$line" "$tree/.config" || echo "debug_kernel.sh: not taken over: $line" >&2 ;;
		esac
	done <"$tests/debug-kernel.config" >/dev/null
	[ "$1" != --configure ] || exit 0
	make -s -C "$tree" -j"$(nproc)" bzImage modules
	echo "$key" >"$cache/key"
fi
# in_lab TEST OPTIONS WORDS: a test program of the command line in that kernel.
in_lab() {
	local test=$1 options=$2
	shift 2
	(cd "$root" &&
		CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="$canter lab --quiet --kernel $tree --timeout 180m $options -- env SLOWNESS=20 SOAK_FRAMES=${SOAK_FRAMES:-20000}" \
			cargo test --locked -p canter --test "$test" $profile -- --ignored --test-threads=1 "$@")
}
devices='--cpus 2 --bus probe --canchar virtual,3,4'
profile=
if [ "$1" = --soak ]; then
	profile=--release
	in_lab canchar "$devices" --nocapture a_long_run
	exit
fi
share=$root/target/canwire/debug
mkdir -p "$share/canwire" "$share/uapi"
cp "$root"/kernel/canwire/*.[ch] "$root"/kernel/canwire/Kbuild "$share/canwire/"
cp "$root"/kernel/uapi/canwire.h "$share/uapi/"
cp "$root"/kernel/compat.h "$share/"
make -s -C "$tree" M="$share/canwire" modules
# Some functions of the wire need one processor, mistakes between processors need two. Going under full traffic starves
# one such processor.
functions() {
	"$canter" lab --quiet --kernel "$tree" --cpus "$1" --timeout 30m --share "$root/target" -- env \
		CANWIRE_MODULE="$share/canwire/canwire.ko" PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$tests/functions.py" "${@:2}"
}
functions 2
functions 1 -removal
# Without many processes that are no more of the module, bursts that such a kernel is too slow for, and figures.
in_lab canchar "$devices" --skip tools:: --skip of_a_burst --skip interfaces_and_devices --skip what_a_frame_costs
in_lab bare_metal '--bare-metal --bus probe' --skip it_is_as_fast # no figure on such a kernel
