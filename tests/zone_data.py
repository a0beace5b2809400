"""Time zone data of other releases: a few zones of 2022a and 2023c, as their wheels on PyPI have them."""

from __future__ import annotations

from pathlib import Path
from pkgutil import get_data
from typing import Final

from cloudsched.domain.recurrence.time_zones import ZoneData

MEXICO: Final = "America/Mexico_City"
"""Gave up summer time in October 2022: 9:00 in summer was 14:00 UTC by 2022a, and is 15:00 UTC by 2023c."""
AMMAN: Final = "Asia/Amman"
"""Stays at UTC+3 since October 2022: 9:00 in winter was 7:00 UTC by 2022a, and is 6:00 UTC by 2023c."""
CAIRO: Final = "Africa/Cairo"
"""Has summer time again since April 2023: 9:00 in summer was 7:00 UTC by 2022a, and is 6:00 UTC by 2023c."""
_FOLDER: Final = Path(__file__).parent / "zone_releases"


def load_release(release: str, without: str = "") -> ZoneData:
    """Return the data of a release for the three zones, and the installed ones for all others; one may be missing."""

    def read(path: str) -> bytes | None:
        if path == "zones":
            names = (get_data("tzdata", path) or b"").decode().split()
            return "\n".join(name for name in names if name != without).encode()
        frozen = _FOLDER / release / path.removeprefix("zoneinfo/")
        return frozen.read_bytes() if frozen.is_file() else get_data("tzdata", path)

    return ZoneData(release, read)
