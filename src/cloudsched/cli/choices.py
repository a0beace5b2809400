"""Options whose values are the members of a closed set, whose module takes longer to import than a ``--help`` takes."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

from cloudsched.config.imports import pause_collection

if TYPE_CHECKING:
    from collections.abc import Iterable
    from enum import StrEnum


class MemberChoice(click.Choice):  # type: ignore[type-arg]  # not generic before click 8.4
    """A choice among the members of a closed set, which is imported once the values are shown, completed or compared.

    Args:
        place: Where the set is, such as ``domain.documents.task:TaskStatus``.
        case_sensitive: As for `click.Choice`.
    """

    def __init__(self, place: str, *, case_sensitive: bool = False) -> None:
        self._place = place
        self.case_sensitive = case_sensitive

    @cached_property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]  # click has them from the start
        """The values."""
        module, _, name = self._place.partition(":")
        with pause_collection():
            members = getattr(import_module(f"cloudsched.{module}"), name)
        return tuple(self.spell(members))

    def spell(self, members: Iterable[StrEnum]) -> Iterable[str]:
        """Return what is typed for each member: by default, its value, where click would take its name."""
        return (each.value for each in members)


class HyphenatedChoice(MemberChoice):
    """A choice among the names of members in small letters, with hyphens."""

    def spell(self, members: Iterable[StrEnum]) -> Iterable[str]:
        """Return the names."""
        return (each.name.lower().replace("_", "-") for each in members)


CATEGORY: Final = MemberChoice("domain.documents.category:Category")
EXECUTION_STATUS: Final = MemberChoice("domain.documents.execution:ExecutionStatus")
TASK_STATUS: Final = MemberChoice("domain.documents.task:TaskStatus")
ROLE: Final = MemberChoice("web.auth.roles:Role", case_sensitive=True)
BATCH_ACTION: Final = HyphenatedChoice("domain.documents.batch_change:BatchAction", case_sensitive=True)
