#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# build.sh OUT [KERNEL...]: builds canwire.ko against the header packages in the lab's cache, without a warning, as
# OUT/KERNEL/canwire.ko. The sources are copied, because a kernel's build writes beside them.
set -e
kernel=$(cd "$(dirname "$0")/.." && pwd)
out=$(mkdir -p "$1" && cd "$1" && pwd)
shift
# A kernel's build takes no path with spaces: then by a link.
case $out in
*[[:space:]]*)
	link=$(mktemp -d)
	trap 'rm -rf "$link"' EXIT
	ln -s "$out" "$link/out"
	built=$link/out
	;;
*) built=$out ;;
esac
headers=${XDG_CACHE_HOME:-$HOME/.cache}/canter/headers
[ $# -gt 0 ] || set -- $(ls "$headers")
for release; do
	build=$headers/$release/usr/src/linux-headers-$release
	mkdir -p "$out/$release/canwire" "$out/$release/uapi"
	cp -u "$kernel"/canwire/*.[ch] "$kernel"/canwire/Kbuild "$out/$release/canwire/"
	cp -u "$kernel"/uapi/canwire.h "$out/$release/uapi/"
	cp -u "$kernel"/compat.h "$out/$release/"
	make -s -C "$build" M="$built/$release/canwire" W=1 modules 2>"$out/$release/log" || {
		cat "$out/$release/log" >&2
		exit 1
	}
	if grep -n warning "$out/$release/log" >&2; then
		echo "canwire for $release: warnings" >&2
		exit 1
	fi
	strip -g -o "$out/$release/canwire.ko" "$out/$release/canwire/canwire.ko"
done
