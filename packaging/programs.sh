#!/bin/sh
# Static programs for other people's machines, by zig's linker and musl: packaging/programs.sh TOOLS [CARGO-OPTION…]
#
# TOOLS is the folder in which `make dist` installs zig and cargo-zigbuild. Each program is target/TRIPLE/dist/canter. TARGETS
# names the triples. Where rustup does not offer a target's standard library, it is built from the component rust-src.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
tools=$(cd "$1" && pwd)
shift
PATH=$tools/bin:$PATH
export PATH
cd "$here"

library() { [ -d "$(rustc --print target-libdir --target "$1")" ]; }

for target in ${TARGETS:-x86_64-unknown-linux-musl aarch64-unknown-linux-musl armv7-unknown-linux-musleabihf}; do
	echo "programs: $target"
	if library "$target" || { rustup target add "$target" 2>/dev/null && library "$target"; }; then
		cargo zigbuild -q --locked -p canter --profile dist --target "$target" "$@"
	else
		echo "programs: $target: rustup does not offer its standard library; building it from rust-src"
		rustup component add rust-src 2>/dev/null
		RUSTC_BOOTSTRAP=1 cargo zigbuild -q --locked -p canter --profile dist --target "$target" -Z build-std=std,panic_unwind "$@"
	fi
done
