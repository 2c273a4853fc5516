#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# run.sh KERNEL [NAME=VALUE...]: builds the modules for a kernel and runs the fuzzer on them in the lab's guest. KERNEL:
# 6.12, 6.12-rt, 6.1, 6.1-rt, or the build tree of a kernel. Names: seconds (60), seed (2014), cpus (2), fail_nth (empty),
# patience (seconds until a call hangs: 60), slower (bit rates are divided by it: 1), line (the name of the result: KERNEL),
# replay (calls as a report prints them after this word: they are made again by one thread and printed, nothing else; with
# the slower of the report). The result is target/fuzz/results/LINE-CPUS.toml. With the same seed each thread draws the
# same values.
set -e
tests=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$tests/../../.." && pwd)
canter=${CANTER:-${CARGO_TARGET_DIR:-$root/target}/debug/canter}
kernel=$1
shift
seconds=60 seed=2014 cpus=2 fail_nth='' patience=60 slower=1 replay='' line=${kernel##*/}
for word; do
	case ${word%%=*} in
	seconds | seed | cpus | fail_nth | patience | slower | replay | line) declare "$word" ;;
	*) echo "run.sh: $word: unknown (seconds seed cpus fail_nth patience slower replay line)" >&2; exit 2 ;;
	esac
done

# Every ioctl of a header is in a table: what is new there must be fuzzed, too. Commands and attributes of canwire are
# counted by the compiler.
for name in $(sed -n 's/^#define[ \t]*\(CAN[A-Z]*_[A-Z_]*\)[ \t]*_IO[RW]*(.*/\1/p' "$root"/kernel/uapi/*.h); do
	grep -q "\"$name\"" "$tests"/*.c || { echo "run.sh: no table has $name of kernel/uapi" >&2; exit 1; }
done

for name in $(sed -n 's/^static DEVICE_ATTR_R\?[OW]*(\([a-z_]*\));/\1/p' "$root"/kernel/canchar/*.c); do
	grep -q "\"$name\"" "$tests/disturb.c" || { echo "run.sh: disturb.c has no attribute $name" >&2; exit 1; }
done

share=$root/target/fuzz
mkdir -p "$share/results"
# A kernel's build takes no path with spaces.
built=$share
case $share in
*[[:space:]]*)
	link=$(mktemp -d)
	trap 'rm -rf "$link"' EXIT
	ln -s "$share" "$link/fuzz"
	built=$link/fuzz
	;;
esac
gcc -D_GNU_SOURCE -O2 -g -Wall -Wextra -Wno-unused-parameter -Werror -static -pthread -o "$share/fuzz" "$tests"/*.c
instrument=
if [ -d "$kernel" ]; then
	build=$kernel
	# Coverage of the modules alone.
	! grep -qx CONFIG_KCOV=y "$build/.config" || instrument=KCOV_INSTRUMENT=y
else
	release=$("$tests/../release.sh" "$kernel")
	if [ -z "$release" ]; then
		# The lab fetches the headers of a kernel when it has to build a module for it.
		"$canter" lab --quiet --kernel "$kernel" --bus wire -- true
		release=$("$tests/../release.sh" "$kernel")
	fi
	build=${XDG_CACHE_HOME:-$HOME/.cache}/canter/headers/$release/usr/src/linux-headers-$release
fi
mkdir -p "$share/$line/modules"
cp -u "$root"/kernel/*.[ch] "$share/$line/"
for module in canwire canchar probe canbare; do
	mkdir -p "$share/$line/$module" "$share/$line/uapi"
	cp -u "$root"/kernel/uapi/*.h "$share/$line/uapi/"
	cp -u "$root"/kernel/$module/*.[ch] "$root"/kernel/$module/Kbuild "$share/$line/$module/"
	env -u MAKEFLAGS make -s -C "$build" M="$built/$line/$module" $instrument modules >"$share/$line/log" 2>&1 || {
		cat "$share/$line/log" >&2
		exit 1
	}
	cp "$share/$line/$module"/*.ko "$share/$line/modules/"
done

# One processor more, which Linux leaves to canbare, where the kernel takes so many.
processors=$cpus words='kasan_multi_shot log_buf_len=16M loglevel=5'
# RCU's threads above the threads of interrupts and of canwire (SCHED_FIFO 50), which an overloaded bus may keep running.
! grep -qx CONFIG_PREEMPT_RT=y "$build/.config" || words="$words rcutree.kthread_prio=51"
limit=$(sed -n 's/^CONFIG_NR_CPUS=//p' "$build/.config")
if [ "$cpus" -lt "${limit:-64}" ]; then
	processors=$((cpus + 1))
	words="$words maxcpus=$cpus memmap=64K\$0x10000"
fi
revision=$(git -C "$root" describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)
minutes=$(((seconds * 3 + patience * 4) / 60 + 20))
"$canter" lab --quiet --kernel "$kernel" --cpus "$processors" --append "$words" --timeout "${minutes}m" \
	--console "$share/results/$line-$cpus.console" --share "$root/target" -- \
	/usr/bin/python3 "$tests/guest.py" "$share/fuzz" "$share/$line/modules" "$share/results/$line-$cpus.toml" \
	"line=$line" "revision=$revision" "seed=$seed" "seconds=$seconds" "patience=$patience" \
	"slower=$slower" ${fail_nth:+fail_nth=1} ${replay:+"replay=$replay"}
