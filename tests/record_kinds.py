"""Every kind of record, whatever has been imported before."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path

import cloudsched
from cloudsched.domain.documents.record import Record

SOURCES = Path(cloudsched.__file__).parent
_DEFINITION = re.compile(r"^class \w+\(.*\bRecord\b", re.MULTILINE)


@cache
def list_record_kinds() -> frozenset[type[Record]]:
    """Import each module that defines a kind of record, and return the kinds."""
    for path in SOURCES.rglob("*.py"):
        if _DEFINITION.search(path.read_text("utf-8")):
            import_module(".".join(path.relative_to(SOURCES.parent).with_suffix("").parts))
    return frozenset(each for each in Record.__subclasses__() if each.__module__.startswith("cloudsched."))
