#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# suite.sh short|long KERNEL...: functions and figures of the module on kernels of the lab. Both on the virtual clock,
# where they do not depend on what else this machine does; short: figures on the first kernel only; long: 100 000 contended
# frames, and the real clock too. Several at once need different first kernels.
set -e
# Those of a make that runs this are not for the kernel's: its complaint about them would count as a warning.
unset MAKEFLAGS
tests=$(cd "$(dirname "$0")" && pwd)
size=$1
shift
failed= first=$1
export RESULTS=results/$size-$first
results=$tests/../../target/canwire/$RESULTS
rm -rf "$results"
run() {
	echo "# $*"
	"$tests/run.sh" "$@" || failed="$failed\n# failed: $*"
}
for kernel; do
	run "$kernel" virtual functions.py
	[ "$size" = short ] || run "$kernel" real functions.py
	if [ "$size" = long ]; then
		CONTENDED=100002 run "$kernel" virtual measure.py
	elif [ "$kernel" = "$first" ]; then
		run "$kernel" virtual measure.py
	fi
done
"$tests/verify.py" "$results" || failed="$failed\n# failed: verify.py"
printf "$failed\n"
[ -z "$failed" ]
