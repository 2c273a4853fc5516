#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# run.sh KERNEL CLOCK PROGRAM [ARGUMENT...]: builds the module for a kernel of the lab and runs one of the tests'
# programs in its guest (CONTENDED=n: that many contended frames). KERNEL: 6.12, 7.3-rt or another of which there
# are headers; CLOCK: real or virtual.
set -e
tests=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$tests/../.." && pwd)
canter=${CANTER:-${CARGO_TARGET_DIR:-$root/target}/debug/canter}
kernel=$1 clock=$2 program=$3
shift 3
share=$root/target/canwire
results=$share/${RESULTS:-results}
mkdir -p "$results"
release=$("$tests/release.sh" "$kernel")
if [ -z "$release" ]; then
	# The lab fetches the headers of a kernel when it has to build a module for it.
	"$canter" lab --quiet --kernel "$kernel" --bus wire -- true
	release=$("$tests/release.sh" "$kernel")
fi
# Two of these at once build one after the other.
flock "$share/building" "$tests/build.sh" "$share" "$release" >&2
exec "$canter" lab --quiet --kernel "$kernel" --clock "$clock" ${LAB:-} --share "$root/target" -- \
	sh -c 'export CANWIRE_MODULE=$1/$(uname -r)/canwire.ko CANWIRE_RESULTS=$4 PYTHONDONTWRITEBYTECODE=1
		export CONTENDED=$3
		program=$2; shift 4; exec /usr/bin/python3 "$program" "$@"' sh "$share" "$tests/$program" \
	"${CONTENDED:-9000}" "$results" "$@"
