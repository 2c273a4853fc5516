#!/bin/sh
# tests/host_arm64.sh CANTER CANTER_ARM64 FOLDER: the lab on an arm64 host, as far as emulation goes: the lab's own arm64 guest
# is the host, with a root of Debian's packages that has QEMU, and CANTER_ARM64 boots a guest in that guest. Emulation in
# emulation takes minutes. FOLDER keeps the root.
set -eu
canter=$(realpath "$1") program=$(realpath "$2")
mkdir -p "$3"
root=$(realpath "$3")/arm64
cache=${CANTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/canter}
"$canter" lab --quiet --arch arm64 -- true # now the cache has apt's state, a kernel and a root
if [ ! -e "$root/complete" ]; then
	rm -rf "$root" "$root.debs"
	mkdir -p "$root" "$root.debs/partial"
	APT_CONFIG=$cache/apt/arm64/apt.conf apt-get install -y -q --no-install-recommends --download-only \
		-o Dir::Cache::archives="$root.debs" bash busybox-static coreutils kmod qemu-system-arm util-linux xz-utils zstd > "$root.log"
	cp -a "$cache/roots/arm64/." "$root/"
	for deb in "$root.debs"/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink --no-same-owner -C "$root"
	done
	rm -r "$root.debs" "$root/.canter"
	touch "$root/complete"
fi
# The host has this kernel installed: /lib/modules/RELEASE as on Fedora, since there is no apt.
kernel=$(ls -d "$cache"/kernels/linux-image-6.12.*-arm64 | grep -v -e -rt-arm64 | tail -n 1)
release=${kernel##*/linux-image-}
rm -rf "$root/usr/lib/modules"
mkdir -p "$root/usr/lib/modules"
cp -a "$kernel/lib/modules/$release" "$root/usr/lib/modules/"
cp "$kernel/boot/vmlinuz-$release" "$root/usr/lib/modules/$release/vmlinuz"
cp "$kernel/boot/config-$release" "$root/usr/lib/modules/$release/config"
cp "$program" "$root/usr/bin/canter"
cat > "$root/cards" <<'end'
for each in 0 1; do ip link set can$each up type can bitrate 500000; done
candump -n 1 can1 > /tmp/seen &
until grep -q ' can1 ' /proc/net/can/rcvlist_all; do sleep 0.1; done
cansend can0 123#11
wait
echo "$(uname -rm) $(xargs < /tmp/seen)"
end
cat > "$root/try" <<'end'
mount -t proc proc /proc; mount -t devtmpfs dev /dev; mount -t sysfs sys /sys; mount -t tmpfs tmp /tmp
export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mkdir -p /root && cd /root
exec canter lab --memory 512M --timeout 100m -- sh /cards
end
found=$("$canter" lab --quiet --arch arm64 --memory 2G --timeout 120m --share "$root" -- "chroot '$root' bash /try")
[ "$found" = "$release aarch64 can1 123 [1] 11" ] || { echo "on an arm64 host: $found" >&2; exit 1; }
echo "well"
