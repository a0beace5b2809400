"""Tables that have a row for each member of a closed set: one that lacks a row is refused when it is imported."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    Member = TypeVar("Member", bound=StrEnum)
Row = TypeVar("Row")


def complete_table(members: type[Member], rows: Mapping[Member, Row]) -> Mapping[str, Row]:
    """Return a table by the members of a closed set, or by their texts.

    If the rows are code, write a `match` that ends in `assert_never` instead, which the type check verifies.
    """
    missing = [each.name for each in members if each not in rows]
    if missing:
        raise TypeError(f"A table of {members.__name__} has no row for {', '.join(missing)}.")
    return {str(member): row for member, row in rows.items()}
