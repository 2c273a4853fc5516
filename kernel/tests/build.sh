#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# build.sh OUT [KERNEL...]: builds our modules and those of tests against the header packages in the lab's cache,
# without a warning, as OUT/KERNEL/MODULE.ko. KERNEL: the name of a header package's release, or the build tree of a kernel,
# whose modules are in OUT/its last folder. The sources are copied, because a kernel's build writes beside them.
set -e
kernel=$(cd "$(dirname "$0")/.." && pwd)
out=$(mkdir -p "$1" && cd "$1" && pwd)
shift
# A kernel's build takes no path with spaces, and from 6.13 on looks through links: then it is elsewhere, each time anew.
case $out in
*[[:space:]]*)
	built=$(mktemp -d)
	trap 'rm -rf "$built"' EXIT
	;;
*) built=$out ;;
esac
headers=${XDG_CACHE_HOME:-$HOME/.cache}/canter/headers
[ $# -gt 0 ] || set -- $(ls "$headers")
for release; do
	build=$headers/$release/usr/src/linux-headers-$release
	[ ! -d "$release/scripts" ] || build=$release release=${release##*/}
	mkdir -p "$out/$release" "$built/$release/uapi"
	cp -u "$kernel"/uapi/*.h "$built/$release/uapi/"
	cp -u "$kernel"/*.[ch] "$built/$release/"
	for module in canwire canchar probe tests/name_taken tests/napi_weight; do
		name=${module##*/}
		mkdir -p "$built/$release/$name"
		cp -u "$kernel/$module"/*.[ch] "$kernel/$module/Kbuild" "$built/$release/$name/"
		make -s -C "$build" M="$built/$release/$name" W=1 modules 2>"$out/$release/log" || {
			cat "$out/$release/log" >&2
			exit 1
		}
		if grep -n warning "$out/$release/log" >&2; then
			echo "$name for $release: warnings" >&2
			exit 1
		fi
		for object in "$built/$release/$name"/*.ko; do
			strip -g -o "$out/$release/${object##*/}" "$object"
		done
	done
done
