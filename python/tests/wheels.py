"""What `make wheels` must have made: a wheel for each processor, for every Python from 3.10 and glibc 2.17, with licences.

Usage: wheels.py FOLDER
"""

import pathlib
import sys
import zipfile

WANT = {"x86_64": b"\x3e\0", "aarch64": b"\xb7\0", "armv7l": b"\x28\0"}  # e_machine of the library (elf.h)

for machine, elf in WANT.items():
    found = [path for path in pathlib.Path(sys.argv[1]).glob("canter-*-cp310-abi3-*.whl") if machine in path.name and "manylinux_2_17" in path.name]
    assert len(found) == 1, f"{machine}: one wheel of manylinux_2_17, and not {[path.name for path in found]}"
    with zipfile.ZipFile(found[0]) as wheel:
        names = wheel.namelist()
        library = next(name for name in names if name.endswith(".so"))
        assert wheel.read(library)[18:20] == elf, f"{library} is not for {machine}"
        for licence in ("LICENSE-MIT", "LICENSE-APACHE"):
            assert any(name.endswith(f".dist-info/licenses/{licence}") for name in names), (licence, names)
    print(found[0].name)
