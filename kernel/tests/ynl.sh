#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# ynl.sh [KERNEL]: uapi/canwire.yaml is valid by the kernel's schema, and the kernel's own client of such descriptions
# (tools/net/ynl/cli.py) controls canwire by it, in the lab. KERNEL: as run.sh, 6.12 unless given.
set -e
tests=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$tests/../.." && pwd)
source=$("$tests/source.sh")
share=$root/target/canwire/ynl
if [ ! -d "$share/python" ]; then
	mkdir -p "$share"
	rm -rf "$share/new" "$share/venv"
	python3 -m venv "$share/venv"
	"$share/venv/bin/pip" install -q --disable-pip-version-check --target "$share/new" PyYAML==6.0.3 jsonschema==4.26.0
	mv "$share/new" "$share/python"
fi
rm -rf "$share/ynl"
mkdir -p "$share/ynl"
cp -r "$source/tools/net/ynl/cli.py" "$source/tools/net/ynl/lib" "$source/Documentation/netlink/genetlink.yaml" \
	"$tests/../uapi/canwire.yaml" "$share/ynl/"
PYTHONPATH=$share/python:$share/ynl "$share/venv/bin/python" - "$share/ynl" <<'PYTHON'
import sys
from lib import SpecFamily

folder = sys.argv[1]
family = SpecFamily(f"{folder}/canwire.yaml", f"{folder}/genetlink.yaml")
print(f"ok: canwire.yaml is valid: {len(family.msgs)} commands, {len(family.attr_sets['canwire'].attrs)} attributes")
PYTHON
exec "$tests/run.sh" "${1:-6.12}" real ynl.py "$share"
