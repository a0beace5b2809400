"""The extras of ``pip install 'cloudsched[extra]'``: what is missing is named with the command that installs it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from cloudsched.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def require_extra(part: str, extra: str) -> Iterator[None]:
    """Turn our own failure to import another project's module into `MissingExtra`, which names the command to run."""
    try:
        yield
    except ModuleNotFoundError as error:
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        importer = "" if place is None else str(place.tb_frame.f_globals.get("__name__"))
        package = (error.name or "cloudsched").partition(".")[0]
        if package == "cloudsched" or importer.partition(".")[0] != "cloudsched":  # such as a handler's own import
            raise
        raise MissingExtra(part, package, extra) from error
