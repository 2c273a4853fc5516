#!/bin/bash
# Installs both packages by apt, uses what came of it, upgrades, removes and purges them: packaging/install.sh target/deb
# As root, on an overlay of this machine's root: nothing of it stays. packaging/drive.sh does the same to a running service.
set -eu
[ "$(id -u)" = 0 ] || { echo "SKIPPED packaging/install.sh: an overlay of / needs root"; exit 0; }
export package modules
package=$(readlink -f "$1"/canter_*_"$(dpkg --print-architecture)".deb)
modules=$(readlink -f "$1"/canter-dkms_*_all.deb)
export over
over=$(mktemp -d -p /var/tmp)
trap 'rm -rf "$over"' EXIT
mkdir "$over"/{root,changes,work,next}
# The same package with a higher version.
dpkg-deb -R "$package" "$over/next"
sed -i 's/^Version: .*/&.1/' "$over/next/DEBIAN/control"
dpkg-deb --root-owner-group -Zgzip -z1 -b "$over/next" "$over/next.deb" >/dev/null
rm -rf "$over/next"

# Every file where packages put some, but what apt, dpkg and ldconfig keep for themselves.
files() {
	find /etc /usr /var /opt \( -path /var/tmp -o -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/log \
		-o -path /var/cache -o -path /etc/ld.so.cache \) -prune -o -print | sort
}

inside() {
	export DEBIAN_FRONTEND=noninteractive
	apt="apt-get install -q -y --no-install-recommends"
	# What they depend on is no trace of them.
	$apt $(dpkg-deb -f /dkms.deb Depends | sed 's/ *([^)]*)//g; s/,//g') systemd
	files >/tmp/before
	cp /etc/passwd /etc/group /tmp
	$apt /canter.deb /dkms.deb
	[ "$(command -v canter)" = /usr/bin/canter ]
	canter --version | grep -q "$(dpkg-query -W -f '${source:Upstream-Version}' canter)"
	canter service check
	getent passwd _canter | grep -q ':/var/lib/canter:'
	[ "$(dpkg -S 70-canchar.rules)" = 'canter-dkms: /usr/lib/udev/rules.d/70-canchar.rules' ]
	for unit in /usr/lib/systemd/system/canter-*; do systemd-analyze verify "${unit/@/@x}"; done
	systemctl enable canter-capture@drive canter-rules
	mkdir -p /var/lib/canter
	echo frames >/var/lib/canter/drive-0001.log
	# What somebody has changed or enabled stays when the package is upgraded or goes, and goes when it is purged.
	echo '# mine' >>/etc/canter/canter.toml
	echo '# mine' >/etc/canter/rules.toml
	$apt -o Dpkg::Options::=--force-confold /next.deb
	grep -q '# mine' /etc/canter/canter.toml
	[ -L /etc/systemd/system/multi-user.target.wants/canter-capture@drive.service ]
	apt-get remove -q -y canter canter-dkms
	[ ! -e /usr/bin/canter ]
	grep -q '# mine' /etc/canter/canter.toml
	$apt -o Dpkg::Options::=--force-confold /canter.deb
	grep -q '# mine' /etc/canter/canter.toml
	apt-get purge -q -y canter canter-dkms | tee /tmp/purged
	grep -q '^canter: /var/lib/canter and .* stay' /tmp/purged
	grep -q frames /var/lib/canter/drive-0001.log
	getent passwd _canter
	# Without recordings nothing stays, not even the user.
	rm /var/lib/canter/drive-0001.log
	$apt /canter.deb
	apt-get purge -q -y canter
	files >/tmp/after
	diff /tmp/before /tmp/after
	diff /tmp/passwd /etc/passwd
	diff /tmp/group /etc/group
}

in_overlay() {
	mount -t overlay overlay -o "lowerdir=/,upperdir=$over/changes,workdir=$over/work" "$over/root"
	mount --bind /dev "$over/root/dev"
	mount -t proc proc "$over/root/proc"
	mount -t tmpfs tmpfs "$over/root/tmp"
	cp "$package" "$over/root/canter.deb"
	cp "$modules" "$over/root/dkms.deb"
	cp "$over/next.deb" "$over/root/next.deb"
	chroot "$over/root" bash -eux -o pipefail -c "$(declare -f files inside); inside" > "$over/log" 2>&1 ||
		{ cat "$over/log"; exit 1; }
}
export -f files inside in_overlay
unshare --mount --propagation private bash -eu -c in_overlay
echo "$package and $modules: installed by apt, used, upgraded, removed, purged"
