# ruff: noqa: INP001 - a script among shell scripts, not a package
"""Pin what pip resolved, with hashes, and list it in a bill of materials.

Usage: pins.py list WHEEL REPORT                          requirements that pin each package which pip found as a wheel
       pins.py write WHEEL REPORT [REPORT-OF-THE-TARGET]  requirements.txt and sbom.cdx.json in this folder

WHEEL is cloudsched's own, as a path that begins with ./; empty if cloudsched comes from the index like the others.
A REPORT is what `pip install --report` writes. The machine that builds may need other files than the target's, such as
wheels for macOS, so a pin has the hashes of both. Without the target's report the pins have no hashes.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

OWN = "cloudsched"


def read_packages(report: str, wheel: str) -> dict[str, dict[str, Any]]:
    """Return the packages of a report by name, without our own wheel."""
    installed = json.loads(Path(report).read_text(encoding="utf-8"))["install"]
    named = {re.sub(r"[-_.]+", "-", each["metadata"]["name"]).lower(): each for each in installed}
    return {name: each for name, each in sorted(named.items()) if not (wheel and name == OWN)}


def get_hash(package: dict[str, Any]) -> str:
    """Return the SHA-256 of the file that pip chose."""
    found: str = package["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256", "")
    return found


def list_wheels(wheel: str, report: str) -> None:
    """Print a pin for each package whose file is a wheel; a source distribution is the same everywhere."""
    for name, package in read_packages(report, wheel).items():
        if package["download_info"]["url"].endswith(".whl"):
            sys.stdout.write(f"{name}=={package['metadata']['version']}\n")


def write(wheel: str, report: str, target: str | None) -> None:
    """Write both files. The packages of our own wheel's extras are in the reports."""
    packages, others = read_packages(report, wheel), read_packages(target, wheel) if target else {}
    hashes = {
        name: sorted({found for each in (package, others.get(name)) if each and (found := get_hash(each))})
        for name, package in packages.items()
    }
    is_hashed = target is not None and all(hashes.values())
    lines, components = [], []
    if wheel:
        own = hashlib.sha256(Path(wheel).read_bytes()).hexdigest()
        lines.append(f"{wheel} --hash=sha256:{own}" if is_hashed else wheel)
        components.append(to_component(OWN, wheel.split("-")[1], [own]))
    for name, package in packages.items():
        version = package["metadata"]["version"]
        pin = f"{package['metadata']['name']}=={version}"
        lines.append(" ".join([pin, *(f"--hash=sha256:{each}" for each in hashes[name])]) if is_hashed else pin)
        components.append(to_component(name, version, hashes[name]))
    Path("requirements.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": components}
    Path("sbom.cdx.json").write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")
    if not is_hashed:
        sys.stderr.write("requirements.txt has no hashes: pip found no files for the functions' runtime\n")


def to_component(name: str, version: str, hashes: list[str]) -> dict[str, Any]:
    """Return a package as a component of the bill of materials."""
    return {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}",
        "hashes": [{"alg": "SHA-256", "content": each} for each in hashes],
    }


if __name__ == "__main__":
    if sys.argv[1] == "list":
        list_wheels(sys.argv[2], sys.argv[3])
    else:
        write(sys.argv[2], sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else None)  # noqa: PLR2004 - optional
