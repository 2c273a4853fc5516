#!/usr/bin/env python3
"""Writes debian/copyright: whose the sources are, and whose the crates are that they are built with.

    packaging/copyright.py             writes the file anew, from Cargo.lock and the sources of the crates
    packaging/copyright.py --check     exits with 1 when the file is not what it would write

The crates' licences are in their Cargo.toml, their copyright lines and notices in the files beside it. The paragraph of a
crate names it as `cargo vendor` lays it out in the source package.
"""

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "debian" / "copyright"

# SPDX's names and Debian's.
DEBIAN = {"MIT": "Expat", "Apache-2.0 WITH LLVM-exception": "Apache-2.0-with-LLVM-exception",
          "LGPL-2.1-or-later": "LGPL-2.1+"}
# Licences whose text every Debian system has.
COMMON = {"Apache-2.0": "Apache-2.0", "LGPL-2.1+": "LGPL-2.1", "CC0-1.0": "CC0-1.0", "GPL-2.0-only": "GPL-2"}
# Whose file has the text of a licence.
TEXT = {"BSD-2-Clause": ("zerocopy", "LICENSE-BSD"), "BSD-3-Clause": ("zstd", "LICENSE"), "Zlib": ("zlib-rs", "LICENSE"),
        "0BSD": ("adler2", "LICENSE-0BSD"), "Unlicense": ("memchr", "UNLICENSE"),
        "Unicode-3.0": ("unicode-ident", "LICENSE-UNICODE"),
        "Apache-2.0-with-LLVM-exception": ("rustix", "LICENSE-Apache-2.0_WITH_LLVM-exception")}
# Parts of a crate that are other people's.
PARTS = [("zstd-sys", "zstd/*", "Meta Platforms, Inc. and affiliates", "BSD-3-Clause or GPL-2.0-only")]

LICENCE_FILE = re.compile(r"(?i)^(licen[sc]e|copying|copyright|notice|unlicense)")
LINE = re.compile(r"(?i)^[\s/*#]*(?:copyright\s*(?:\(c\)|©)?|\(c\)|©)[:\s]\s*(.*(?:\d{4}|[A-Z]).*)$")
# Sentences of licences that begin as a notice does, and blanks of their appendices.
NOT_A_NOTICE = re.compile(r"(?i)\[?(yyyy|name of|notice|license|owner|and related|holder|law|statement|in the|to use)"
                          r"|Free Software Foundation|copyrightable|assignment is|^\[year|, THIS|^\W*$")

HEAD = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: canter
Comment: Written by packaging/copyright.py. vendor/ has the crates that the source
 package is built with; those that Linux needs are linked into usr/bin/canter, with
 Rust's standard library (the Rust Project Developers; Expat or Apache-2.0). It also
 carries the sources of the kernel modules, as data.

Files: *
Copyright: 2026 the canter authors
License: Expat or Apache-2.0

Files: kernel/*
Copyright: 2026 the canter authors
License: GPL-2.0-only

Files: kernel/uapi/*.h
Copyright: 2026 the canter authors
License: GPL-2.0-only with Linux-syscall-note exception

Files: kernel/uapi/canwire.yaml
Copyright: 2026 the canter authors
License: GPL-2.0-only with Linux-syscall-note exception or BSD-3-Clause
"""

SYSCALL_NOTE = """\
License: GPL-2.0-only with Linux-syscall-note exception
 On Debian systems the text of the GNU General Public License, version 2, is in
 /usr/share/common-licenses/GPL-2. The exception:
 .
 NOTE! This copyright does *not* cover user programs that use kernel services by
 normal system calls - this is merely considered normal use of the kernel, and
 does *not* fall under the heading of "derived work".
"""


def crates():
    """Every crate of Cargo.lock that is not ours: name, metadata."""
    metadata = json.loads(subprocess.run(["cargo", "metadata", "--locked", "--all-features", "--format-version", "1"], cwd=ROOT,
                                         stdout=subprocess.PIPE, check=True).stdout)
    ours = set(metadata["workspace_members"])
    return sorted((package for package in metadata["packages"] if package["id"] not in ours),
                  key=lambda package: (package["name"], package["version"]))


def licence_files(package):
    folder = Path(package["manifest_path"]).parent
    found = [Path(where) / name for where, _, names in os.walk(folder) for name in names if LICENCE_FILE.match(name)]
    return sorted(path for path in found if path.suffix not in (".rs", ".c", ".h"))


def copyright_lines(package):
    lines = {}
    for path in licence_files(package):
        for line in path.read_text(errors="replace").splitlines():
            found = LINE.match(line)
            if found and not NOT_A_NOTICE.search(found[1]):
                lines[re.sub(r"(?i)\s*\.?\s*All rights reserved\.?", "", found[1]).strip()] = None
    if not lines:
        authors = [re.sub(r"\s*<.*>", "", author) for author in package["authors"]]
        lines = dict.fromkeys(authors or [f"the {package['name']} developers"])
    return list(lines)


def notices(package):
    return [path.read_text(errors="replace").strip() for path in licence_files(package)
            if path.name.lower().startswith("notice")]


def debian_licence(expression):
    """An SPDX expression in the words of Debian's format; `a/b` is how old crates say `a OR b`."""
    expression = re.sub(r"\s*/\s*", " OR ", expression)
    for spdx, debian in DEBIAN.items():
        expression = re.sub(rf"(?<![\w.-]){re.escape(spdx)}(?![\w.-])", debian, expression)
    # `and` binds closer, and there are no brackets: what is required comes after a comma.
    return re.sub(r"^\((.*)\) AND (.*)$", r"\1, AND \2", expression).replace(" OR ", " or ").replace("AND", "and")


def indented(text):
    return "\n".join(f" {line.rstrip()}" if line.strip() else " ." for line in text.splitlines())


def paragraph(package, twice):
    name, version = package["name"], package["version"]
    folders = f"vendor/{name}/*" + (f" vendor/{name}-{version}/*" if twice else "")
    copyright = "\n ".join(copyright_lines(package))
    comment = f"{name} {version}" + (f", {package['repository']}" if package.get("repository") else "")
    for notice in notices(package):
        comment += "\n" + indented("Its notice:\n\n" + notice)
    licence = debian_licence(package["license"])
    return f"Files: {folders}\nCopyright: {copyright}\nLicense: {licence}\nComment: {comment}\n"


def text_of(licence, packages):
    if licence in COMMON:
        return f"License: {licence}\n On Debian systems the text is in /usr/share/common-licenses/{COMMON[licence]}.\n"
    if licence == "Expat":
        text = (ROOT / "LICENSE-MIT").read_text()
    else:
        crate, name = TEXT[licence]
        package = next(package for package in packages if package["name"] == crate)
        text = (Path(package["manifest_path"]).parent / name).read_text()
        # The exception follows the licence, which is in common-licenses.
        text = re.sub(r"(?s).*?(?=--- LLVM Exceptions)", "Apache-2.0, with this exception:\n\n", text, count=1)
    lines = [line for line in textwrap.dedent(text).splitlines() if not LINE.match(line) or NOT_A_NOTICE.search(line)]
    return f"License: {licence}\n{indented(chr(10).join(lines).strip())}\n"


def written():
    packages = crates()
    names = [package["name"] for package in packages]
    paragraphs = [HEAD]
    paragraphs += [paragraph(package, names.count(package["name"]) > 1) for package in packages]
    paragraphs += [f"Files: vendor/{crate}/{files}\nCopyright: {whose}\nLicense: {licence}\n"
                   for crate, files, whose, licence in PARTS]
    used = {"Expat", "Apache-2.0", "GPL-2.0-only"}
    for package in packages:
        used.update(re.split(r" or |, and ", debian_licence(package["license"])))
    paragraphs += [text_of(licence, packages) for licence in sorted(used)]
    return "\n".join([*paragraphs, SYSCALL_NOTE])


def main():
    text = written()
    if sys.argv[1:] == ["--check"]:
        if not FILE.exists() or FILE.read_text() != text:
            sys.exit("debian/copyright: not that of Cargo.lock's crates (packaging/copyright.py writes it)")
    else:
        FILE.write_text(text)


main()
