"""Say on what the benchmarks run, and install what they are compared with.

    python -m benchmarks.machine

It prints the machine, and the versions of everything that is measured: put it beside figures that you publish. What our
figures stand beside is installed in an environment of its own, build/rivals: the dependency group `benchmarks` of
pyproject.toml. The benchmarks that have rivals do that themselves.
"""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
import tomllib
import venv
from importlib.metadata import distributions, version
from pathlib import Path

from cloudsched.domain.recurrence import time_zones

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "rivals"
GROUP = "benchmarks"
OURS = ("pydantic", "google-cloud-firestore", "google-cloud-tasks", "grpcio", "python-dateutil")
"""Packages that our figures depend on, and those of the floors."""


def describe_machine() -> dict[str, str]:
    """Return what a reader has to know, by what it is about."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    return {
        "CPU": f"{read_cpu()}, {os.cpu_count()} cores",
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "Python": f"{platform.python_version()}, SQLite {sqlite3.sqlite_version}, tzdata {time_zones.in_use.release}",
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


def install_rivals() -> Path:
    """Install the rivals unless they are there already, and return their Python."""
    python, stamp = FOLDER / "bin" / "python", FOLDER / "installed"
    expected = f"{sys.version} {read_requirements()}"
    if stamp.is_file() and stamp.read_text("utf-8") == expected:
        return python
    print(f"Installing the rivals in {FOLDER} …", file=sys.stderr)
    venv.create(FOLDER, clear=True, with_pip=True)
    _run(str(python), "-m", "pip", "install", "--quiet", "--upgrade", "pip>=25.1")
    _run(str(python), "-m", "pip", "install", "--quiet", "--group", f"{ROOT / 'pyproject.toml'}:{GROUP}")
    stamp.write_text(expected, "utf-8")
    return python


def find_site_packages() -> Path:
    """Return the folder of the installed rivals, for benchmarks that import them beside our own packages."""
    install_rivals()
    return Path(sysconfig.get_path("purelib", "venv", {"base": str(FOLDER)}))


def read_requirements() -> list[str]:
    """Return the requirements of the dependency group."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    return list(groups[GROUP])


def list_versions() -> dict[str, str]:
    """Return the versions of the installed rivals by their names."""
    wanted = {one.partition(">")[0] for one in read_requirements()}
    folder = find_site_packages()
    found = {one.name: one.version for one in distributions(path=[str(folder)]) if one.name.lower() in wanted}
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def _run(*command: str) -> None:
    try:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - pip
    except subprocess.CalledProcessError as error:
        shutil.rmtree(FOLDER)
        sys.exit(f"The rivals could not be installed; see the error above. The command was: {' '.join(error.cmd)}")


if __name__ == "__main__":
    print(*(f"{name}: {value}" for name, value in describe_machine().items()), sep="\n")
