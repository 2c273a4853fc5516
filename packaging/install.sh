#!/bin/bash
# Installs this machine's package by apt, uses what came of it, and removes it again: packaging/install.sh target/deb
# As root, on an overlay of this machine's root: nothing of it stays.
set -eu
[ "$(id -u)" = 0 ] || { echo "SKIPPED packaging/install.sh: an overlay of / needs root"; exit 0; }
export package
package=$(readlink -f "$1"/canter_*_"$(dpkg --print-architecture)".deb)
export over
over=$(mktemp -d -p /var/tmp)
trap 'rm -rf "$over"' EXIT
mkdir "$over"/{root,changes,work}

inside() {
	export DEBIAN_FRONTEND=noninteractive
	apt-get install -q -y --no-install-recommends /canter.deb
	[ "$(command -v canter)" = /usr/bin/canter ]
	canter --version | grep -q "$(dpkg-query -W -f '${Version}' canter)"
	canter service check
	getent passwd canter
	for unit in /lib/systemd/system/canter-*; do
		if command -v systemd-analyze; then systemd-analyze verify "$unit"; fi
	done
	# What somebody has changed stays when the package goes, and goes when it is purged.
	echo '# mine' >> /etc/canter/canter.toml
	apt-get remove -q -y canter
	if [ -e /usr/bin/canter ]; then exit 1; fi
	grep -q '# mine' /etc/canter/canter.toml
	apt-get install -q -y --no-install-recommends -o Dpkg::Options::=--force-confold /canter.deb
	grep -q '# mine' /etc/canter/canter.toml
	apt-get purge -q -y canter
	[ ! -e /etc/canter ]
}

in_overlay() {
	mount -t overlay overlay -o "lowerdir=/,upperdir=$over/changes,workdir=$over/work" "$over/root"
	mount --bind /dev "$over/root/dev"
	mount -t proc proc "$over/root/proc"
	cp "$package" "$over/root/canter.deb"
	chroot "$over/root" bash -eu -c "$(declare -f inside); inside" > "$over/log" 2>&1 || { cat "$over/log"; exit 1; }
}
export -f inside in_overlay
unshare --mount --propagation private bash -eu -c in_overlay
echo "$package: installed by apt, used, removed, purged"
