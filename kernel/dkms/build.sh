#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# build.sh source ROOT: the sources below ROOT/usr/src/canter-VERSION, as DKMS wants them.
# build.sh deb FOLDER: FOLDER/canter-dkms_VERSION_all.deb, which has DKMS build the modules for each kernel.
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

control() {
	cat <<-END
		Package: canter-dkms
		Version: $version
		Architecture: all
		Maintainer: The canter developers <canter@localhost>
		Depends: dkms (>= 2.8)
		Recommends: linux-headers-amd64 | linux-headers-generic
		Section: kernel
		Priority: optional
		Description: virtual CAN buses that have time, and CAN controllers as character devices
		 canwire: virtual CAN buses with bit rates, arbitration, receive queues that overrun and errors. Their
		 nodes are CAN interfaces like those of hardware.
		 .
		 canchar: SJA1000 cards, and virtual devices, past the network stack. Takes a card only when told to.
		 .
		 canprobe: an exact instrument on two such cards. canbare (amd64): a processor of its own for a gateway
		 without an operating system, between two such cards. Neither does anything until it is loaded and told to.
	END
}

copyright() {
	echo "The modules are GPL-2.0, their headers in uapi GPL-2.0 WITH Linux-syscall-note: each file says its own."
	echo "On Debian: /usr/share/common-licenses/GPL-2."
}

deb() {
	local out=$1 root script
	mkdir -p "$out"
	root=$(mktemp -d)
	trap 'rm -rf "$root"' EXIT
	chmod 755 "$root"
	lay_out "$root"
	mkdir -p "$root/DEBIAN" "$root/usr/share/doc/canter-dkms" "$root/usr/lib/udev/rules.d"
	cp "$kernel/README.md" "$root/usr/share/doc/canter-dkms/canwire.md"
	cp "$kernel/canchar/README.md" "$root/usr/share/doc/canter-dkms/canchar.md"
	cp "$kernel/probe/README.md" "$root/usr/share/doc/canter-dkms/canprobe.md"
	cp "$kernel/canbare/README.md" "$root/usr/share/doc/canter-dkms/canbare.md"
	cp "$kernel/canchar/70-canchar.rules" "$root/usr/lib/udev/rules.d/"
	copyright >"$root/usr/share/doc/canter-dkms/copyright"
	control >"$root/DEBIAN/control"
	for script in postinst prerm; do
		sed "s/@VERSION@/$version/" "$dkms/$script" >"$root/DEBIAN/$script"
		chmod 755 "$root/DEBIAN/$script"
	done
	dpkg-deb --root-owner-group --build "$root" "$out/canter-dkms_${version}_all.deb"
}

case $1 in
source) lay_out "${2?where to}" ;;
deb) deb "${2?where to}" ;;
*) echo "usage: build.sh source ROOT | build.sh deb FOLDER" >&2 && exit 2 ;;
esac
