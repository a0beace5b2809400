"""Help for imports: a pause of garbage collection, and an error that says how to install what is missing."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from cloudsched.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Iterator

RARE_COLLECTION = 100_000
"""The number of new objects after which our own programs look for garbage in cycles. Runs make no cycles. A
group of runs makes 10,000 objects, and a tenth of the time would go into searches of what is still in use."""


@contextmanager
def pause_collection(*, keeps_all: bool = False) -> Iterator[None]:
    """Pause garbage collection while modules are imported.

    Imported objects stay, and repeated searches of them would take a tenth of the time. With `keeps_all`,
    all present objects are exempt for ever, and later ones are searched less often. Only our own programs
    do so.
    """
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if keeps_all:
            gc.freeze()
            gc.set_threshold(RARE_COLLECTION)
        if is_collecting:
            gc.enable()


EXTRAS: Final = {
    "_quickjs": "sandbox",
    "a2wsgi": "asgi",
    "aiohttp": "dev",
    "apprise": "apprise",
    "cachecontrol": "gcp",
    "click": "worker",
    "django": "django",
    "firebase_admin": "gcp",
    "flask": "server",
    "functions_framework": "gcp",
    "google": "gcp",
    "grpc": "gcp",
    "h2": "dev",
    "holidays": "holidays",
    "httpcore": "worker",
    "httpx": "worker",
    "hyperframe": "dev",
    "icalendar": "calendars",
    "jinja2": "server",
    "jwt": "dev",
    "markupsafe": "server",
    "mcp": "mcp",
    "opentelemetry": "telemetry",
    "rich": "server",
    "sqlalchemy": "sqlalchemy",
    "tenacity": "worker",
    "uvicorn": "mcp",
    "waitress": "server",
    "yarl": "dev",
}
"""The extra that brings each package that we import and a plain installation lacks."""


@contextmanager
def require_extra(part: str, extra: str = "") -> Iterator[None]:
    """Turn our own failure to import another project's module into `MissingExtra`.

    Args:
        part: What needs the module.
        extra: An extra that brings all that the part needs, if that is more than the missing package.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = explain_missing(part, error, extra)
        if missing is None:
            raise
        raise missing from error


def explain_missing(part: str, error: ModuleNotFoundError, extra: str = "") -> MissingExtra | None:
    """Return the message for a failed import of an extra. None for all other modules."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    importer = "" if place is None else str(place.tb_frame.f_globals.get("__name__"))
    package = (error.name or "cloudsched").partition(".")[0]
    if package not in EXTRAS or importer.partition(".")[0] != "cloudsched":  # such as a handler's own import
        return None
    from importlib.metadata import PackageNotFoundError  # noqa: PLC0415 - only for this error, as the next one

    from cloudsched.config.own_requirement import find_own_requirement  # noqa: PLC0415

    wanted = extra or EXTRAS[package]
    try:
        requirement = find_own_requirement().with_extra(wanted)
    except PackageNotFoundError:  # a checkout on the path
        requirement = ""
    return MissingExtra(part, package, wanted, requirement)
