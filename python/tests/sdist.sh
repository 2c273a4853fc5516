#!/bin/sh
# The source distribution alone: packs it, installs it by pip from an empty folder, imports it, and looks for its licences.
# Needs Cargo, and a registry for maturin and the crates.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${1:-python3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
(cd "$root/python" && "$root/target/python/bin/python" -m maturin sdist --out "$scratch/sdist" 2> "$scratch/said") || { cat "$scratch/said" >&2; exit 1; }
cd "$scratch"
mkdir empty
"$python" -m venv venv
cp sdist/canter-*.tar.gz empty
rm -rf sdist
cd empty
# Where Cargo builds is no business of the caller's target folder: what is there may be what the archive lacks.
env -u CARGO_TARGET_DIR "$scratch/venv/bin/pip" install -q --disable-pip-version-check ./canter-*.tar.gz
"$scratch/venv/bin/python" - <<'end'
import importlib.metadata, sys, can, canter
try:
    can.Bus(interface="canter", channel="nocan9")
    sys.exit("an interface that does not exist was opened")
except can.CanInitializationError as error:
    print("from the source distribution, Python", sys.version.split()[0], "says:", error)
files = [str(file) for file in importlib.metadata.files("canter")]
for licence in ("LICENSE-MIT", "LICENSE-APACHE"):
    assert any(file.endswith("licenses/" + licence) for file in files), (licence, files)
end
