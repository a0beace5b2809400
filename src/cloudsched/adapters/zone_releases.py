"""Other releases of the time zone data: from wheels, from folders, or from PyPI by pip."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zipfile import BadZipFile, ZipFile

from cloudsched.domain.recurrence.time_zones import ZoneData
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

INSTALLED: Final = "installed"
"""What stands for the release that is installed here."""
_IANA: Final = re.compile(r"(\d{4})([a-z])\Z")
_VERSION: Final = re.compile(r"\d{4}\.\d+(\.post\d+)?\Z")
_RELEASE: Final = re.compile(r"IANA_VERSION\s*=\s*['\"](\w+)['\"]")


def open_release(name: str, cache: Path | None = None) -> ZoneData:
    """Return the data of a release.

    Args:
        name: `INSTALLED`; the path of a wheel of ``tzdata`` or of a folder that it was unpacked to; or a release
            (``2026a``) or a version (``2026.1``), which pip downloads.
        cache: Where downloaded wheels are kept; nowhere if None.

    Raises:
        InvalidInput: It is none of these, or cannot be read.
    """
    if name == INSTALLED:
        return ZoneData()
    path = Path(name)
    if path.suffix == ".whl" or path.is_dir():
        return _open_path(path)
    iana = _IANA.match(name)
    version = f"{iana[1]}.{ord(iana[2]) - ord('a') + 1}" if iana else name
    if not _VERSION.match(version):
        hint = "Give a release (2026a), a version (2026.1), a wheel of tzdata, its folder, or 'installed'."
        raise InvalidInput("release", f"is {name[:80]!r}", hint)
    if cache is not None:
        return _open_path(_download(version, cache))
    with tempfile.TemporaryDirectory() as folder:
        return _open_path(_download(version, Path(folder)))


def _download(version: str, folder: Path) -> Path:
    found = next(iter(folder.glob(f"tzdata-{version}-*.whl")), None)
    if found is not None:
        return found
    command = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder))
    done = subprocess.run((*command, f"tzdata=={version}"), capture_output=True, text=True, check=False)  # noqa: S603 - a version, as checked
    found = next(iter(folder.glob(f"tzdata-{version}-*.whl")), None)
    if found is None:
        why = (done.stderr.strip().splitlines() or ["pip does not say why"])[-1]
        raise InvalidInput("release", f"tzdata {version} cannot be downloaded: {why}", "Give a wheel's path instead.")
    return found


def _open_path(path: Path) -> ZoneData:
    try:
        read = _read_wheel(path) if path.suffix == ".whl" else _read_folder(path)
        release = _RELEASE.search((read("__init__.py") or b"").decode())
    except (OSError, BadZipFile, UnicodeDecodeError) as error:
        raise InvalidInput("release", f"{str(path)!r} cannot be read: {error}", "Give a wheel of tzdata.") from error
    if release is None or read("zones") is None:
        raise InvalidInput("release", f"{str(path)!r} is no package tzdata", "Give a wheel of tzdata, or its folder.")
    return ZoneData(release[1], read)


def _read_wheel(path: Path) -> Callable[[str], bytes | None]:
    """Return a function that finds a wheel's files; all of it is read now, so that the wheel may be deleted."""
    with ZipFile(path) as wheel:
        files = {name: wheel.read(name) for name in wheel.namelist() if name.startswith("tzdata/")}
    return lambda name: files.get(f"tzdata/{name}")


def _read_folder(path: Path) -> Callable[[str], bytes | None]:
    package = path / "tzdata" if (path / "tzdata" / "zones").is_file() else path

    def read(name: str) -> bytes | None:
        file = package / name
        return file.read_bytes() if file.is_file() else None

    return read
