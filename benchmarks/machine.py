"""Say on what the benchmarks run: the machine, and the versions of everything that is measured.

    python -m benchmarks.machine [--check docs/explanation/benchmarks.md]

Put it beside figures that you publish. With ``--check`` the command fails if a page states something else about this
machine; the load is not compared.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from benchmarks.rivals import list_versions

from cloudsched.domain.recurrence import time_zones

OURS = ("pydantic", "google-cloud-firestore", "google-cloud-tasks", "grpcio", "python-dateutil")
"""Packages that our figures depend on, and those of the floors."""
CHANGING = ("load", "cloudsched")
"""What differs from one run to the next, and so is not compared."""


def describe_machine() -> dict[str, str]:
    """Return what a reader has to know, by what it is about."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    return {
        "CPU": f"{read_cpu()}, {os.cpu_count()} cores",
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "Python": f"{platform.python_version()}, SQLite {sqlite3.sqlite_version}, tzdata {time_zones.version()}",
        "Node.js": read_node(),
        "ours": ", ".join(f"{name} {version(name)}" for name in OURS),
        "rivals": ", ".join(f"{name} {found}" for name, found in list_versions().items()),
        "cloudsched": version("cloudsched"),
        "load": f"{load} (the last 1, 5 and 15 minutes)",
    }


def read_cpu() -> str:
    """Return the processor's name."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text("utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def read_node() -> str:
    """Return the version of Node.js, which runs rrule.js."""
    node = shutil.which("node")
    if node is None:
        return "none"
    return subprocess.run((node, "--version"), capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603


def find_differences(page: str, machine: dict[str, str]) -> list[str]:
    """Return what a page does not say about this machine."""
    return [
        f"the page does not say: {name}: {value}"
        for name, value in machine.items()
        if name not in CHANGING and f"{name}: {value}" not in page
    ]


def main() -> None:
    """Print the description, or compare a page with it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", type=Path, metavar="PAGE", help="fail if the page states something else")
    options = parser.parse_args()
    machine = describe_machine()
    print(*(f"{name}: {value}" for name, value in machine.items()), sep="\n")
    if options.check:
        differences = find_differences(options.check.read_text("utf-8"), machine)
        print(*differences, sep="\n", file=sys.stderr)
        sys.exit(bool(differences))


if __name__ == "__main__":
    main()
