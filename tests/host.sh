#!/bin/sh
# tests/host.sh SUITE CANTER CANTER_ARM64 FOLDER: the lab on a host with another release of Debian (SUITE: trixie). Makes a chroot
# of its packages in FOLDER, once, and boots guests from there by CANTER, a built program: the cards, the FD cards, whose driver
# is built from Debian's sources, canwire, which is built from the program's own, the analyzer, whose plugin is built for this
# QEMU, also on an arm64 board, and kernels of other suites. Needs root and mmdebstrap.
set -eu
suite=$1 canter=$(realpath "$2") arm64=$(realpath "$3")
mkdir -p "$4"
root=$(realpath "$4")/$suite
if [ "$(id -u)" != 0 ]; then
	echo "SKIPPED tests/host.sh: a chroot needs root"
	exit 0
fi
packages=qemu-system-x86,qemu-system-arm,busybox-static,kmod,xz-utils,zstd,util-linux,make,gcc,libc6-dev,iproute2,can-utils,ca-certificates
if [ "$(cat "$root/complete" 2>/dev/null)" != "$packages" ]; then
	rm -rf "$root"
	mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' | grep -v security | head -n 1)
	security=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' | grep security | head -n 1)
	mmdebstrap --quiet --variant=apt "--include=$packages" "$suite" "$root" \
		"deb $mirror $suite main" "deb $mirror $suite-updates main" ${security:+"deb $security $suite-security main"}
	echo "$packages" > "$root/complete"
fi
cat > "$root/try" <<'end'
#!/bin/sh
set -eu
cd /root
. /etc/os-release
echo "host: $PRETTY_NAME, $(qemu-system-x86_64 --version | head -n 1)"
apt-get update -q > update 2>&1 || { cat update >&2; exit 1; }
expect() { [ "$2" = "$3" ] || { echo "$1: $2 instead of $3" >&2; exit 1; }; }
for each in 0 1; do echo "ip link set can$each up type can bitrate 500000"; done > cards
cat >> cards <<'cards'
timeout 20 candump -n 1 can1 > /tmp/seen &
until grep -q ' can1 ' /proc/net/can/rcvlist_all; do sleep 0.02; done
cansend can0 123#11
wait
xargs < /tmp/seen
cards
expect "the cards" "$(canter lab -- sh cards)" "can1 123 [1] 11"
expect "the FD cards" "$(canter lab --fd-cards 1 -- ip link set can5 type can bitrate 500000 dbitrate 2000000 fd on && echo on)" on
expect canwire "$(canter lab --bus wire --clock virtual -- sh -c 'ip link set wcan0 up type can bitrate 500000 && echo up')" up
for each in 0 1 2 3 4; do echo "ip link set can$each up type can bitrate 500000"; done > analyze
echo 'canter latency --instrument analyzer --send can0 --routed can2 --through can3,can4 --method can-gw --count 20 --json -' >> analyze
for board in amd64 arm64; do
	canter lab --arch $board --analyzer --clock virtual -- sh analyze > analyzed
	expect "the analyzer, $board" "$(grep -c '"name": "soft interrupt"' analyzed)" 1
done
expect "another suite's kernel" "$(canter lab --kernel 6.1 -- uname -r | cut -d. -f1,2)" 6.1
expect "a newer kernel with canwire" "$(canter lab --kernel 7.3 --bus wire -- 'uname -r | cut -d. -f1,2')" 7.3
canter lab --kernel 9.9 -- true 2> refusal && { echo "9.9: there is one here" >&2; exit 1; }
grep -q 'kernel 9.9: not offered (offered: 6.1, .*7.3' refusal || { cat refusal >&2; exit 1; }
canter lab --clean | grep -q '^removed .* MB: /root/.cache/canter$'
echo "well"
end
chmod +x "$root/try"
cp "$canter" "$root/usr/local/bin/canter"
mkdir -p "$root/usr/local/aarch64-unknown-linux-gnu/bin"
cp "$arm64" "$root/usr/local/aarch64-unknown-linux-gnu/bin/canter"
# In namespaces of its own, so that nothing stays mounted or running.
exec unshare --mount --pid --fork --kill-child sh -eu -c '
	mount --rbind /dev "$1/dev"; mount -t proc proc "$1/proc"; mount -t sysfs sys "$1/sys"
	cp /etc/resolv.conf "$1/etc/resolv.conf"
	exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$1" /try' sh "$root"
