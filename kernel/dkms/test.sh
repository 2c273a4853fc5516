#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# test.sh [KERNEL]: installs canter-dkms by Debian's dkms for a kernel of the lab (6.12), loads what came of it in the
# guest by modprobe, and removes the package. As root, on an overlay of this machine's root: nothing of it stays.
set -e
dkms=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$dkms/../.." && pwd)
canter=${CANTER:-${CARGO_TARGET_DIR:-$root/target}/debug/canter}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/canter
out=$root/target/canwire/dkms
kernel=${1:-6.12}
release=$("$dkms/../tests/release.sh" "$kernel")
if [ -z "$release" ]; then
	echo "test.sh: no headers of $kernel in the lab's cache (canter lab --kernel $kernel --bus wire -- true)" >&2
	exit 1
fi
rm -rf "$out"
"$root/packaging/deb.sh" canter-dkms "$out"
over=$(mktemp -d -p /var/tmp)
trap 'rm -rf "$over"' EXIT
mkdir "$over"/{root,changes,work,modules,modules-work}

# other_kernel RELEASE PCI 64BIT: a kernel that is too new, without PCI or of 32 bits is passed over by what the installation of its headers
# runs. Nothing can be built against it.
other_kernel() {
	local build=/lib/modules/$1/build
	mkdir -p "$build/include"
	printf 'CONFIG_CAN_DEV=m\nCONFIG_PCI=%s\nCONFIG_64BIT=%s\n' "$2" "$3" >"$build/.config"
	printf 'all modules clean:\n\tfalse\n' >"$build/Makefile"
	run-parts --exit-on-error --arg="$1" /etc/kernel/header_postinst.d ||
		{ echo "test.sh: the hooks of linux-headers-$1 fail" >&2; exit 1; }
	DEBIAN_FRONTEND=noninteractive dpkg -i /deb/*.deb # with such a kernel there already
	if dkms status canter -k "$1" | grep installed; then exit 1; fi
	rm -rf "/lib/modules/$1"
}

# The kernel's modules lie over the overlay, so that depmod knows all of them and $over/modules gets what DKMS adds.
in_overlay() {
	mount -t overlay overlay -o "lowerdir=/,upperdir=$over/changes,workdir=$over/work" "$over/root"
	mount --bind /dev "$over/root/dev"
	mount -t proc proc "$over/root/proc"
	local modules=$over/root/lib/modules/$release
	mkdir -p "$modules" "$over/root/deb"
	mount -t overlay overlay -o "lowerdir=$cache/kernels/linux-image-$release/lib/modules/$release,upperdir=$over/modules,workdir=$over/modules-work" "$modules"
	ln -sfn "$cache/headers/$release/usr/src/linux-headers-$release" "$modules/build"
	cp "$out"/*.deb "$over/root/deb/"
	chroot "$over/root" bash -e -c '
		export DEBIAN_FRONTEND=noninteractive
		command -v dkms >/dev/null || apt-get install -q -y --no-install-recommends dkms >/dev/null
		dpkg -i /deb/*.deb
		run-parts --exit-on-error --arg="$0" /etc/kernel/header_postinst.d
		dkms status canter' "$release"
	chroot "$over/root" bash -e -c "$(declare -f other_kernel); other_kernel 9.9.0-test y y; other_kernel 6.12.0-test n y; other_kernel 6.12.0-test y n"
	cp -r "$over/modules" "$out/modules"
	chroot "$over/root" bash -e -c '
		dpkg -r canter-dkms
		[ -z "$(dkms status canter)" ]
		[ ! -e /lib/modules/$0/updates/dkms/canwire.ko ]' "$release"
}
export -f in_overlay other_kernel
export over release cache out
unshare --mount --propagation private bash -e -c in_overlay

"$canter" lab --quiet --kernel "$kernel" --share "$root/target" -- sh -e -c '
	modules=/lib/modules/$(uname -r)
	mkdir /tmp/work
	cp -r "$0/modules" /tmp/modules
	mount -t overlay overlay -o lowerdir=$modules,upperdir=/tmp/modules,workdir=/tmp/work $modules
	modprobe canwire nodes=w0:A,w1:A
	ip link set w0 up type can bitrate 500000
	ip link set w1 up type can bitrate 500000
	candump -n 1 w1 >/tmp/heard &
	until grep -q " w1 " /proc/net/can/rcvlist_all; do :; done
	cansend w0 123#DEADBEEF
	wait
	grep "123 .*DE AD BE EF" /tmp/heard
	modprobe canchar virtual=2
	[ -c /dev/canchar1 ]
	modprobe canprobe
	modprobe canbare
	[ -c /dev/canprobe ] && [ -c /dev/canbare ]' "$out"
echo "canter-dkms for $release: installed, loaded by modprobe, removed"
