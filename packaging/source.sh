#!/bin/bash
# The source package, with the crates that canter is built with, so that dpkg-buildpackage needs no network:
#
#     packaging/source.sh target/source && cd target/source/canter-* && dpkg-buildpackage -b
#
# Packs the last commit. cargo and rustc 1.88 or newer may come from elsewhere than Debian: dpkg-buildpackage -d.
set -euo pipefail
[ $# = 1 ] || { echo 'usage: packaging/source.sh FOLDER' >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
version=$(cd "$root" && dpkg-parsechangelog -S Version)
upstream=${version%-*}
tree=$folder/canter-$upstream
rm -rf "$tree" "$folder/.debian"
mkdir "$tree"
git -C "$root" archive HEAD | tar -x -C "$tree"
mv "$tree/debian" "$folder/.debian"
(cd "$tree" && cargo vendor --quiet --locked vendor)
cat >>"$tree/.cargo/config.toml" <<-'end'

	# Only what is here.
	[source.crates-io]
	replace-with = "vendored"
	[source.vendored]
	directory = "vendor"
	[net]
	offline = true
end
# The same sources make the same archive.
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git -C "$root" log -1 --format=%ct)" \
	-C "$folder" -c "canter-$upstream" | xz -T0 -"${COMPRESSION:-6}" >"$folder/canter_$upstream.orig.tar.xz"
mv "$folder/.debian" "$tree/debian"
(cd "$folder" && dpkg-source --build "canter-$upstream")
