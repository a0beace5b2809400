"""What is stored of a person: the records that are deleted with them, and those that are exported."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.audit_note import AuditNote
from cloudsched.domain.documents.owner_usage import UsageFront, UsageSheet
from cloudsched.domain.documents.person import Person
from cloudsched.domain.documents.recent_count import RecentCount
from cloudsched.features.table import FEATURES, find_place

if TYPE_CHECKING:
    from cloudsched.domain.documents.record import Record
    from cloudsched.engine.handlers.context import Context

_KERNEL_RECORDS: Final[tuple[type[Record], ...]] = (RecentCount, UsageSheet, UsageFront, AuditNote)


@cache
def list_owned_records() -> tuple[type[Record], ...]:
    """Return every kind of record that belongs to a person, the person last. The jobs are not among them."""
    return (*_list_of_features(is_kept=False), *_KERNEL_RECORDS, Person)


def _list_of_features(*, is_kept: bool) -> list[type[Record]]:
    kinds: list[type[Record]] = [find_place(place) for feature in FEATURES for place in feature.records]
    return [kind for kind in kinds if kind.is_kept == is_kept]


def list_exported_records() -> tuple[type[Record], ...]:
    """Return the kinds that are the person's own data: no hashes, no keys, no copies of what the inbox has."""
    kinds = [*reversed(list_owned_records()), *_list_of_features(is_kept=True)]
    return tuple(kind for kind in kinds if kind.is_exported)


MIN_TIME_LEFT: Final = timedelta(seconds=60)
"""The time that has to be left of an attempt for another page."""


def is_time_up(ctx: Context) -> bool:
    """Return whether an attempt should end, and go on in the next one."""
    return ctx.time_left() < MIN_TIME_LEFT
