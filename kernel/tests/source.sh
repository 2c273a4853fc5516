#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# source.sh: prints a folder with the checks and descriptions of the kernel's sources: scripts/checkpatch.pl and kernel-doc,
# tools/net/ynl, Documentation/netlink and the list of ioctl numbers. They are extracted from Debian's linux-source-6.12, which
# apt downloads once, into the lab's cache.
set -e -o pipefail
cache=${XDG_CACHE_HOME:-$HOME/.cache}/canter
tree=$cache/linux-source-6.12-checks
if [ ! -d "$tree" ]; then
	mkdir -p "$cache"
	new=$(mktemp -d "$cache/checks.XXXXXX")
	trap 'rm -rf "$new"' EXIT
	# make test-debug-kernel may have downloaded it.
	package=$(find "$cache/debug-kernel" -name 'linux-source-6.12_*.deb' 2>/dev/null | tail -1 || true)
	if [ -z "$package" ]; then
		(cd "$new" && apt-get download -q linux-source-6.12 >&2) || {
			echo "source.sh: linux-source-6.12: cannot be downloaded (Debian's bookworm-security or newer has it)" >&2
			exit 1
		}
		package=$(ls "$new"/linux-source-6.12_*.deb)
	fi
	dpkg-deb --fsys-tarfile "$package" | tar xO ./usr/src/linux-source-6.12.tar.xz |
		tar xJ -C "$new" --wildcards linux-source-6.12/scripts/checkpatch.pl linux-source-6.12/scripts/spelling.txt \
			linux-source-6.12/scripts/const_structs.checkpatch 'linux-source-6.12/scripts/kernel-doc*' \
			'linux-source-6.12/tools/net/ynl/*' 'linux-source-6.12/Documentation/netlink/*' \
			'linux-source-6.12/Documentation/userspace-api/ioctl/*'
	mv -T "$new/linux-source-6.12" "$tree" 2>/dev/null || [ -d "$tree" ] # somebody else was faster
fi
echo "$tree"
