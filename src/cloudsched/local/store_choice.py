"""Which store the local stack keeps its tasks in: the embedded one, or Google's Firestore emulator."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cloudsched.adapters.firestore.emulator import HOW_TO_GET, Found, Missing, find
from cloudsched.errors import Misconfigured, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

Wanted = Literal["auto", "sqlite", "firestore"]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The store to use, and why."""

    kind: Literal["sqlite", "firestore"]
    why: str
    """Which one it is, why, and how to have the other."""
    address: str | None = None
    """Where the Firestore emulator listens."""


@contextmanager
def chosen(wanted: Wanted, *, address: str | None, kept: bool) -> Iterator[Chosen]:
    """Choose a store, and run what it needs for as long as the ``with`` lasts.

    Args:
        wanted: Which one was asked for; ``auto`` takes the Firestore emulator if there is one.
        address: Where a Firestore emulator is said to run.
        kept: Whether the tasks are to be kept, which only the embedded store does.

    Raises:
        Misconfigured: The one that was asked for cannot be had.
    """
    if wanted == "firestore" and kept:
        raise Misconfigured("The Firestore emulator keeps nothing. Leave --data out, or take --store sqlite.")
    if wanted == "sqlite" or kept:
        reason = "as --store says" if wanted == "sqlite" else "which is what --data keeps"
        yield Chosen("sqlite", f"SQLite, {reason}")
        return
    found = find(address)
    reason = found.reason if isinstance(found, Missing) else ""
    if isinstance(found, Found):
        try:
            found.start()
        except StoreUnavailable as error:
            reason = str(error)
    if isinstance(found, Missing) or reason:
        if wanted == "firestore":
            raise Misconfigured(f"There is no Firestore emulator: {reason}. {HOW_TO_GET}")
        yield Chosen("sqlite", f"SQLite, for want of a Firestore emulator: {reason}. {HOW_TO_GET}")
        return
    with found:
        yield Chosen(
            "firestore",
            f"Google's Firestore emulator on {found.address}: {found.reason}. For the embedded store: --store sqlite",
            found.address,
        )
