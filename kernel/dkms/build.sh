#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# build.sh source ROOT: the sources below ROOT/usr/src/canter-VERSION, as DKMS wants them.
# packaging/deb.sh makes a Debian package of them.
set -e
dkms=$(cd "$(dirname "$0")" && pwd)
kernel=$dkms/..
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$kernel/../Cargo.toml" | head -1)

lay_out() {
	local to=$1/usr/src/canter-$version module
	mkdir -p "$to/uapi"
	for module in canwire canchar probe canbare; do
		mkdir -p "$to/$module"
		cp "$kernel/$module/Kbuild" "$kernel/$module"/*.[ch] "$to/$module/"
		rm -f "$to/$module"/*.mod.c # of a build in place
	done
	cp "$kernel"/uapi/*.h "$to/uapi/"
	cp "$kernel"/*.[ch] "$to/" # what several modules share
	echo 'obj-m += canwire/ canchar/ probe/' >"$to/Kbuild"
	echo 'obj-$(CONFIG_X86_64) += canbare/' >>"$to/Kbuild"
	sed "s/@VERSION@/$version/" "$dkms/dkms.conf" >"$to/dkms.conf"
}

case $1 in
source) lay_out "${2?where to}" ;;
*) echo "usage: build.sh source ROOT" >&2 && exit 2 ;;
esac
