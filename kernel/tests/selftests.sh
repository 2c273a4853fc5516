#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# selftests.sh [KERNEL]: the kernel's own tests of CAN (tools/testing/selftests/net/can) of Debian's 7.3, or of KERNEL, on that
# kernel in the lab: on vcan, as they are run there, and on a node of canwire. 6.12 has none yet.
set -e -o pipefail
tests=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$tests/../.." && pwd)
canter=${CANTER:-${CARGO_TARGET_DIR:-$root/target}/debug/canter}
kernel=${1:-7.3}
folder=$root/target/canwire/selftests-$kernel
suite=tools/testing/selftests

# The lab knows where other suites of Debian are, once it has booted the kernel.
"$canter" lab --quiet --kernel "$kernel" -- true
if [ ! -d "$folder/$suite" ]; then
	rm -rf "$folder" && mkdir -p "$folder/new"
	suites=${XDG_CACHE_HOME:-$HOME/.cache}/canter/apt/suites-amd64/apt.conf
	[ ! -f "$suites" ] || export APT_CONFIG=$suites
	(cd "$folder/new" && apt-get download -q "linux-source-$kernel" >log 2>&1) || { cat "$folder/new/log" >&2; exit 1; }
	dpkg-deb --fsys-tarfile "$folder"/new/linux-source-*.deb | tar xO "./usr/src/linux-source-$kernel.tar.xz" |
		tar xJ -C "$folder/new" --wildcards "*/$suite/net/can/*" "*/$suite/net/lib.sh" "*/$suite/net/lib/*.sh" \
			"*/$suite/kselftest*"
	mv "$folder/new/linux-source-$kernel/tools" "$folder/"
	rm -rf "$folder/new"
fi
cd "$folder/$suite/net/can"
for source in *.c; do
	gcc -O2 -I"$folder/$suite" -o "${source%.c}" "$source"
done
exec "$canter" lab --quiet --kernel "$kernel" --bus wire -- '
	failed=
	for each in *.sh; do
		ip link set wcan1 up type can bitrate 500000
		for interface in vcan9 wcan0; do
			echo "# $each on $interface"
			CANIF=$interface bash "./$each" || failed="$failed $each on $interface"
		done
	done
	[ -z "$failed" ] || { echo "selftests.sh: failed:$failed" >&2; exit 1; }'
