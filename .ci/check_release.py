#!/usr/bin/env python3
"""Refuse a release whose packages, tag and changelog do not belong together, or that packs what it should not.

Usage: .ci/check_release.py TAG DIST
"""

import re
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parents[1]
SOURCE = re.compile(
    r"src/cloudsched/|\.ci/hatch_urls\.py$|(CHANGELOG|README)\.md$|LICENSE$|pyproject\.toml$|PKG-INFO$|\.gitignore$"
)
UNWANTED = re.compile(r"__pycache__|\.pyc$|(^|/)\.venv/|\.env$|\.db$|/tests?/")


def find_faults(tag: str, dist: Path) -> list[str]:
    """Return what is wrong, one line each."""
    version = tag.removeprefix("v")
    wheels, sources = sorted(dist.glob("*.whl")), sorted(dist.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sources) != 1:
        return [f"{dist} has {len(wheels)} wheels and {len(sources)} source distributions; there must be one of each"]
    expected = (f"cloudsched-{version}-", f"cloudsched-{version}.tar")
    others = [path.name for path in (*wheels, *sources) if not path.name.startswith(expected)]
    faults = [f"{name} is not of version {version}: is the tag on this commit?" for name in others]
    if not re.search(rf"^## {re.escape(version)}( |$)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE):
        faults.append(f"CHANGELOG.md has no section '## {version}'")
    with ZipFile(wheels[0]) as wheel:
        names = wheel.namelist()
    faults += [f"the wheel packs {name}" for name in names if not re.match(r"cloudsched(-[^/]+\.dist-info)?/", name)]
    with tarfile.open(sources[0]) as source:
        inside = [name.partition("/")[2] for name in source.getnames()]
    faults += [f"the source distribution packs {name}" for name in inside if name and not SOURCE.match(name)]
    return faults + [f"{name} is packed" for name in (*names, *inside) if UNWANTED.search(name)]


if __name__ == "__main__":
    found = find_faults(sys.argv[1], Path(sys.argv[2]))
    print(*found or [f"{sys.argv[1]}: tag, packages and changelog belong together"], sep="\n")
    sys.exit(bool(found))
