#!/usr/bin/env python3
"""Makes the SBOM of cargo-cyclonedx one of this program alone: sbom.py FILE FOLDER NAMES TIME

cargo-cyclonedx joins the features of all crates of a workspace, so that it names crates that the program is built without. NAMES
is a file with what `cargo tree` lists for the program. FOLDER, in which the sources were, becomes a relative path; the time and
the serial number are those of the commit, so that the same commit has the same SBOM.
"""

import datetime
import json
import pathlib
import sys
import uuid


def main(file, folder, names, seconds):
    text = pathlib.Path(file).read_text().replace(f"file://{folder}/", "file:///canter/")
    bom = json.loads(text)
    lines = [line.split() for line in pathlib.Path(names).read_text().splitlines() if line.strip()]
    built = {(name, version.removeprefix("v")) for name, version, *_ in lines}
    foreign = {part["bom-ref"] for part in bom["components"] if (part["name"], part["version"]) not in built}
    bom["components"] = [part for part in bom["components"] if part["bom-ref"] not in foreign]
    bom["dependencies"] = [one for one in bom["dependencies"] if one["ref"] not in foreign]
    for one in bom["dependencies"]:
        one["dependsOn"] = [ref for ref in one.get("dependsOn", []) if ref not in foreign]
    time = datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc)
    bom["metadata"]["timestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ")
    bom.pop("serialNumber", None)
    bom["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(bom, sort_keys=True))}"
    pathlib.Path(file).write_text(json.dumps(bom, indent=1) + "\n")


main(*sys.argv[1:])
