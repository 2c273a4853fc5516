#!/bin/bash
# The crates as a registry would have them: packs all, unpacks them into an empty folder, builds a program from the
# unpacked files alone, and uses that.
#
#     packaging/crates.sh TARGET [TOOLCHAIN]
#
# TARGET is a folder for what is built. TOOLCHAIN builds the program (`1.88`, the oldest that the crates support); without
# it the usual toolchain does. Packing needs Cargo 1.90.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
target=$(cd "$1" && pwd)

cd "$root"
# Everything is built below, from the unpacked files. A tree with changes is packed as it is.
cargo package --workspace --exclude xtask --locked --no-verify --allow-dirty --quiet --target-dir "$target"

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir "$place/crates" "$place/program" "$place/program/src"
for packed in "$target"/package/*.crate; do
  tar -xzf "$packed" -C "$place/crates"
done
{
  printf '[package]\nname = "program"\nversion = "0.0.0"\nedition = "2024"\n\n[dependencies]\ncanter = "*"\n'
  printf '\n[profile.dev]\nopt-level = 1\ndebug = false\n\n[patch.crates-io]\n'
  for crate in "$place"/crates/*; do
    name=$(basename "$crate")
    printf '%s = { path = "%s" }\n' "${name%-*}" "$crate"
  done
} > "$place/program/Cargo.toml"
printf 'fn main() -> std::process::ExitCode {\n    canter::main()\n}\n' > "$place/program/src/main.rs"
# The versions that the workspace was tested with.
cp "$root/Cargo.lock" "$place/program/Cargo.lock"

cd "$place/program"
cargo ${2:+"+$2"} build --quiet --target-dir "$target/program"
canter=$target/program/debug/program

[ "$("$canter" study list | wc -l)" -ge "$(ls "$root/studies" | wc -l)" ] || { echo 'study list: studies are missing' >&2; exit 1; }

printf '(1700000000.000001) can0 123#DEADBEEF\n' > "$place/a.log"
"$canter" convert --quiet "$place/a.log" -o "$place/a.blf"
"$canter" convert --quiet "$place/a.blf" -o "$place/b.log"
cmp "$place/a.log" "$place/b.log"

# Kernels and headers of the cache are used, modules are built anew, from the sources that the packages carry. A copy,
# beside the cache: the guest has its own /tmp and follows no link that leads out of a folder it mounts, and the kernel's
# build takes no path with spaces, which this folder's may be.
cache=${CANTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/canter}
mkdir -p "$cache"
copy=$(mktemp -d "$cache-packages-XXXXXX")
trap 'rm -rf "$place" "$copy"' EXIT
for entry in "$cache"/*; do
  [ "$(basename "$entry")" = drivers ] || [ ! -e "$entry" ] || cp -a "$entry" "$copy/"
done
export CANTER_CACHE=$copy
"$canter" lab --quiet --bus wire -- sh -c 'grep -q ^canwire /proc/modules'
"$canter" lab --quiet --bus probe --canchar virtual -- sh -c 'grep -q ^canprobe /proc/modules && test -e /dev/canchar0'
"$canter" lab --quiet --bare-metal --bus probe -- sh -c 'grep -q ^canbare /proc/modules'
ls "$CANTER_CACHE/drivers" | grep -q canwire || { echo 'the modules were not built from the packages' >&2; exit 1; }
echo "packages: $(ls "$place/crates" | wc -l) crates packed, unpacked, built and used"
