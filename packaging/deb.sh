#!/bin/sh
# Packs canter for Debian: packaging/deb.sh amd64|arm64|armhf PROGRAM PAGES FOLDER
# PROGRAM is canter built for that architecture, PAGES a canter that runs here and writes man pages and completions.
# The same inputs make the same package, byte for byte: times are those of the last commit.
set -eu
arch=$1 program=$2 pages=$3 folder=$4
here=$(cd "$(dirname "$0")/.." && pwd)
case $arch in
amd64) tools=x86_64-linux-gnu- machine=X86-64 ;;
arm64) tools=aarch64-linux-gnu- machine=AArch64 ;;
armhf) tools=arm-linux-gnueabihf- machine=ARM ;;
*) echo "deb.sh: $arch: amd64, arm64 or armhf" >&2; exit 2 ;;
esac
readelf -h "$program" | grep -q "Machine:.*$machine" || { echo "deb.sh: $program: not for $arch" >&2; exit 1; }
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$here" log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/Cargo.toml" | head -n 1)
umask 022
maintainer="${DEBFULLNAME:-The canter authors} <${DEBEMAIL:-canter@localhost}>"
mkdir -p "$folder"
root=$(mktemp -d "$folder/.canter-XXXXXX")
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"

put() { install -D -p -m "$1" "$2" "$root/$3"; }
put 755 "$program" usr/bin/canter
"${tools}strip" --strip-unneeded --remove-section=.comment --remove-section=.note "$root/usr/bin/canter"

"$pages" manual --pages "$root/usr/share/man/man1"
gzip -9n "$root"/usr/share/man/man1/*.1
for shell in bash zsh fish; do "$pages" manual --completions $shell > "$root/completions.$shell"; done
put 644 "$root/completions.bash" usr/share/bash-completion/completions/canter
put 644 "$root/completions.zsh" usr/share/zsh/vendor-completions/_canter
put 644 "$root/completions.fish" usr/share/fish/vendor_completions.d/canter.fish
rm "$root"/completions.*

for unit in "$here"/packaging/systemd/*; do put 644 "$unit" "lib/systemd/system/$(basename "$unit")"; done
put 644 "$here/kernel/canchar/70-canchar.rules" lib/udev/rules.d/70-canchar.rules
put 644 "$here/packaging/canter.toml" etc/canter/canter.toml

doc=usr/share/doc/canter
for text in "$here"/docs/*.md "$here/README.md" "$here/docs/car.toml"; do put 644 "$text" "$doc/$(basename "$text")"; done
put 644 "$here/packaging/debian/copyright" $doc/copyright
printf 'canter (%s) unstable; urgency=low\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n' \
	"$version" "$maintainer" "$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")" > "$root/$doc/changelog"
put 644 "$here/CHANGELOG.md" $doc/CHANGELOG.md
gzip -9n "$root/$doc/changelog"

# The newest symbol that it uses says which libc6 it needs.
glibc=$("${tools}objdump" -T "$root/usr/bin/canter" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1 | cut -d_ -f2)
mkdir "$root/DEBIAN"
sed -e "s/@VERSION@/$version/" -e "s/@ARCH@/$arch/" -e "s/@GLIBC@/$glibc/" -e "s/@MAINTAINER@/$maintainer/" \
	-e "s/@SIZE@/$(du -k -s --apparent-size "$root" | cut -f1)/" "$here/packaging/debian/control.in" > "$root/DEBIAN/control"
for script in postinst prerm postrm; do put 755 "$here/packaging/debian/$script" DEBIAN/$script; done
echo /etc/canter/canter.toml > "$root/DEBIAN/conffiles"
(cd "$root" && find . -type f ! -path './DEBIAN/*' -printf '%P\n' | LC_ALL=C sort | xargs md5sum > DEBIAN/md5sums)
chmod 644 "$root/DEBIAN/md5sums" "$root/DEBIAN/conffiles" "$root/DEBIAN/control"
find "$root" -print0 | xargs -0 touch -hd "@$SOURCE_DATE_EPOCH"
dpkg-deb --root-owner-group -Zxz --build "$root" "$folder/canter_${version}_$arch.deb"
