#!/bin/bash
# What a release consists of, from what `make dist` has built: packaging/dist.sh TOOLS FOLDER
#
#     canter-VERSION-PROCESSOR.tar.gz   the static program with pages, completions and licences
#     canter_VERSION_ARCH.deb           Debian packages of this version in target/deb
#     canter-VERSION-….whl              wheels of target/wheels, with the static program inside
#     canter-VERSION-source.tar.gz      the last commit
#     canter-VERSION.cdx.json           every crate in the program: an SBOM by CycloneDX
#     SHA256SUMS                        of all of them
#
# The same commit makes the same files: times are those of the last commit.
set -euo pipefail
[ $# = 2 ] || { echo 'usage: packaging/dist.sh TOOLS FOLDER' >&2; exit 2; }
here=$(cd "$(dirname "$0")/.." && pwd)
tools=$(cd "$1" && pwd)
rm -rf "$2"
mkdir -p "$2"
folder=$(cd "$2" && pwd)
scratch=$(mktemp -d "$folder/.dist-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
cd "$here"
umask 022
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

archive() { # archive NAME: the folder NAME in $scratch
	tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$scratch" -c "$1" | gzip -9n >"$folder/$1.tar.gz"
}

# The pages and completions are the same for each processor; this machine's program writes them.
pages=target/$(uname -m)-unknown-linux-musl/dist/canter
"$pages" manual --pages "$scratch/man" >/dev/null
mkdir "$scratch/completions"
for shell in bash zsh fish; do "$pages" manual --completions $shell >"$scratch/completions/canter.$shell"; done

for program in target/*-musl*/dist/canter; do
	triple=${program#target/} processor=
	processor=${triple%%-*}
	name=canter-$version-$processor
	root=$scratch/$name
	mkdir "$root"
	install -p -m 755 "$program" "$root/canter"
	install -p -m 644 README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE docs/car.toml "$root"
	install -p -m 644 debian/copyright "$root/COPYRIGHT"
	cp -r docs "$scratch/man" "$scratch/completions" "$root"
	archive "$name"

	# The wheel of that processor, with the program as a script of the environment.
	for wheel in target/wheels/"canter-$version"-*"_${processor/armv7/armv7l}.whl"; do
		"$tools/bin/python" -m wheel unpack -d "$scratch/wheel" "$wheel" >/dev/null
		install -D -m 755 "$program" "$scratch/wheel/canter-$version/canter-$version.data/scripts/canter"
		"$tools/bin/python" -m wheel pack -d "$folder" "$scratch/wheel/canter-$version" >/dev/null
		rm -r "$scratch/wheel"
	done
done

for package in target/deb/canter_"$version"-*.deb target/deb/canter-dkms_"$version"-*.deb; do cp -p "$package" "$folder"; done

mkdir "$scratch/canter-$version-source"
git archive HEAD | tar -x -C "$scratch/canter-$version-source"
archive "canter-$version-source"
# In the unpacked sources, because the tool writes a file beside the manifest of each crate.
(cd "$scratch/canter-$version-source/crates/canter" && PATH=$tools/bin:$PATH cargo cyclonedx -q --format json --spec-version 1.5 \
	--target all --no-build-deps --override-filename bom)
mv "$scratch/canter-$version-source/crates/canter/bom.json" "$folder/canter-$version.cdx.json"
cargo tree --locked -p canter -e normal --target all --prefix none --format '{p}' >"$scratch/crates.txt"
packaging/sbom.py "$folder/canter-$version.cdx.json" "$scratch/canter-$version-source" "$scratch/crates.txt" "$SOURCE_DATE_EPOCH"

rm -rf "$scratch"
(cd "$folder" && sha256sum -- * >SHA256SUMS)

echo
echo 'bytes of each program (at most 12 000 000)'
stat -c '%12s  %n' target/*-musl*/dist/canter
echo 'bytes of the program without the laboratory (at most 6 000 000)'
stat -c '%12s  %n' target/field/*-musl*/dist/canter
echo 'bytes of what is offered'
(cd "$folder" && stat -c '%12s  %n' -- *)
