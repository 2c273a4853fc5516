#!/bin/sh
# Packs canter for Debian, as debian/ describes it:
#
#     packaging/deb.sh canter ARCH PROGRAM PAGES FOLDER      ARCH: amd64, arm64 or armhf
#     packaging/deb.sh canter-dkms FOLDER
#
# PROGRAM is canter built for ARCH, PAGES a canter that runs here and writes man pages and completions. `make deb` and
# debian/rules both call it. The same inputs make the same package, byte for byte: times are those of debian/changelog.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
umask 022
version=$(cd "$here" && dpkg-parsechangelog -S Version)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(cd "$here" && dpkg-parsechangelog -S Timestamp)}
export SOURCE_DATE_EPOCH
upstream=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/Cargo.toml" | head -n 1)
[ "${version%-*}" = "$upstream" ] || { echo "deb.sh: debian/changelog has $version, Cargo.toml $upstream" >&2; exit 1; }

put() { install -D -p -m "$1" "$2" "$root/$3"; }

# usr/share/doc/PACKAGE of every package.
documents() {
	put 644 "$here/debian/copyright" "usr/share/doc/$package/copyright"
	put 644 "$here/debian/changelog" "usr/share/doc/$package/changelog.Debian"
	put 644 "$here/CHANGELOG.md" "usr/share/doc/$package/changelog"
	put 644 "$here/debian/$package.lintian-overrides" "usr/share/lintian/overrides/$package"
	gzip -9n "$root/usr/share/doc/$package/changelog" "$root/usr/share/doc/$package/changelog.Debian"
}

# finish ARCH [-VNAME=VALUE…]: control files, checksums, times; FOLDER/PACKAGE_VERSION_ARCH.deb.
finish() {
	arch=$1
	shift
	mkdir "$root/DEBIAN"
	for script in preinst postinst prerm postrm; do
		[ -e "$here/debian/$package.$script" ] || continue
		sed "s/@VERSION@/$upstream/" "$here/debian/$package.$script" > "$root/DEBIAN/$script"
		chmod 755 "$root/DEBIAN/$script"
	done
	if [ -e "$root/etc" ]; then (cd "$root" && find etc -type f -printf '/%p\n' | LC_ALL=C sort > DEBIAN/conffiles); fi
	(cd "$root" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | LC_ALL=C sort -z | xargs -0 md5sum > DEBIAN/md5sums)
	# dpkg-buildpackage reads in debian/files which packages there are. Others have no use for it, and it must be a true file:
	# dpkg-gencontrol puts a new one in its place.
	(cd "$here" && DEB_HOST_ARCH=$arch dpkg-gencontrol "-p$package" "-P$root" "-O$root/DEBIAN/control" \
		"-f${DEB_FILES:-$scratch/files}" ${DEBEMAIL:+"-DMaintainer=${DEBFULLNAME:-The canter developers} <$DEBEMAIL>"} "$@")
	chmod 644 "$root"/DEBIAN/control "$root"/DEBIAN/md5sums
	find "$root" -print0 | xargs -0 touch -hd "@$SOURCE_DATE_EPOCH"
	dpkg-deb --root-owner-group -Zxz --build "$root" "$folder/${package}_${version}_$arch.deb"
}

pack_canter() {
	arch=$1 program=$2 pages=$3
	case $arch in
	amd64) tools=x86_64-linux-gnu- machine=X86-64 ;;
	arm64) tools=aarch64-linux-gnu- machine=AArch64 ;;
	armhf) tools=arm-linux-gnueabihf- machine=ARM ;;
	*) echo "deb.sh: $arch: amd64, arm64 or armhf" >&2; exit 2 ;;
	esac
	readelf -h "$program" | grep -q "Machine:.*$machine" || { echo "deb.sh: $program: not for $arch" >&2; exit 1; }
	put 755 "$program" usr/bin/canter
	"${tools}strip" --strip-unneeded --remove-section=.comment --remove-section=.note "$root/usr/bin/canter"
	manuals "$pages"
	for unit in "$here"/packaging/systemd/*; do put 644 "$unit" "usr/lib/systemd/system/$(basename "$unit")"; done
	put 644 "$here/packaging/sysusers.conf" usr/lib/sysusers.d/canter.conf
	put 644 "$here/packaging/canter.toml" etc/canter/canter.toml
	put 644 "$here/packaging/needrestart.conf" etc/needrestart/conf.d/canter.conf
	for text in "$here"/docs/*.md "$here/README.md" "$here/docs/car.toml"; do
		put 644 "$text" "usr/share/doc/canter/$(basename "$text")"
	done
	# The newest symbol that it uses says which libc6 it needs.
	glibc=$("${tools}objdump" -T "$root/usr/bin/canter" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1 | cut -d_ -f2)
	documents
	finish "$arch" "-Vcanter:Libc=$glibc"
}

manuals() {
	"$1" manual --pages "$root/usr/share/man/man1"
	gzip -9n "$root"/usr/share/man/man1/*.1
	for shell in bash zsh fish; do "$1" manual --completions $shell > "$root/completions.$shell"; done
	put 644 "$root/completions.bash" usr/share/bash-completion/completions/canter
	put 644 "$root/completions.zsh" usr/share/zsh/vendor-completions/_canter
	put 644 "$root/completions.fish" usr/share/fish/vendor_completions.d/canter.fish
	rm "$root"/completions.*
}

pack_dkms() {
	"$here/kernel/dkms/build.sh" source "$root"
	# The hooks below do that, and fail no other package.
	sed -i 's/^AUTOINSTALL=.*/AUTOINSTALL=""/' "$root/usr/src/canter-$upstream/dkms.conf"
	for hooks in header_postinst.d postinst.d; do
		mkdir -p "$root/etc/kernel/$hooks"
		sed "s/@VERSION@/$upstream/" "$here/packaging/dkms-hook" > "$root/etc/kernel/$hooks/canter-dkms"
		chmod 755 "$root/etc/kernel/$hooks/canter-dkms"
	done
	put 644 "$here/kernel/canchar/70-canchar.rules" usr/lib/udev/rules.d/70-canchar.rules
	for page in canwire:README canchar:canchar/README canprobe:probe/README canbare:canbare/README; do
		put 644 "$here/kernel/${page#*:}.md" "usr/share/doc/canter-dkms/${page%:*}.md"
	done
	documents
	finish all
}

package=$1
shift
for folder; do :; done
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
scratch=$(mktemp -d "$folder/.canter-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
root=$scratch/root
mkdir "$root"
case $package in
canter) pack_canter "$@" ;;
canter-dkms) pack_dkms ;;
*) echo "deb.sh: $package: canter or canter-dkms" >&2; exit 2 ;;
esac
