"""Install what our figures stand beside, in an environment of its own: build/rivals.

    python -m benchmarks.rivals

It has the dependency group `benchmarks` of pyproject.toml and, where there is npm, rrule.js. The benchmarks that have
rivals call this themselves, so it need not be run before them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "rivals"
GROUP = "benchmarks"
RRULE = "rrule@2.8.1"


def install_rivals() -> Path:
    """Install the rivals unless they are there already, and return their Python."""
    python, stamp = FOLDER / "bin" / "python", FOLDER / "installed"
    npm = shutil.which("npm")
    expected = f"{sys.version} {read_requirements()} {RRULE if npm else ''}"
    if stamp.is_file() and stamp.read_text("utf-8") == expected:
        return python
    print(f"Installing the rivals in {FOLDER} …", file=sys.stderr)
    venv.create(FOLDER, clear=True, with_pip=True)
    _run(str(python), "-m", "pip", "install", "--quiet", "--upgrade", "pip>=25.1")
    _run(str(python), "-m", "pip", "install", "--quiet", "--group", f"{ROOT / 'pyproject.toml'}:{GROUP}")
    if npm:
        _run(npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(FOLDER), RRULE)
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
    package = FOLDER / "node_modules" / "rrule" / "package.json"
    if package.exists():
        found["rrule.js"] = json.loads(package.read_text("utf-8"))["version"]
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def _run(*command: str) -> None:
    try:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - pip and npm
    except subprocess.CalledProcessError as error:
        shutil.rmtree(FOLDER)
        sys.exit(f"The rivals could not be installed; see the error above. The command was: {' '.join(error.cmd)}")


if __name__ == "__main__":
    for name, version in list_versions().items():
        print(f"{name} {version}")
