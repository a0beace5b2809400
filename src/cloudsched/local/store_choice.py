"""Which store the local stack keeps its tasks in: the embedded one, or Google's Firestore emulator."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cloudsched.adapters.firestore.emulator import INSTALL_HINT, EmulatorNotFound, FirestoreEmulator, find_emulator
from cloudsched.errors import Misconfigured, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

StoreChoice = Literal["auto", "sqlite", "firestore"]


@dataclass(frozen=True, slots=True)
class ChosenStore:
    """The store to use, and why."""

    kind: Literal["sqlite", "firestore"]
    reason: str
    """Which one it is, why, and how to have the other."""
    address: str | None = None
    """Where the Firestore emulator listens."""


@contextmanager
def open_store(wanted: StoreChoice, *, address: str | None, is_persistent: bool) -> Iterator[ChosenStore]:
    """Choose a store, and run what it needs for as long as the ``with`` lasts.

    Args:
        wanted: Which one was asked for; ``auto`` takes the Firestore emulator if there is one.
        address: Where a Firestore emulator is said to run.
        is_persistent: Whether the tasks are to be kept, which only the embedded store does.

    Raises:
        Misconfigured: The one that was asked for cannot be had.
    """
    if wanted == "firestore" and is_persistent:
        raise Misconfigured("The Firestore emulator keeps nothing. Leave --data out, or take --store sqlite.")
    if wanted == "sqlite" or is_persistent:
        reason = "as --store says" if wanted == "sqlite" else "which is what --data keeps"
        yield ChosenStore("sqlite", f"SQLite, {reason}")
        return
    found = find_emulator(address)
    reason = found.reason if isinstance(found, EmulatorNotFound) else ""
    if isinstance(found, FirestoreEmulator):
        try:
            found.start()
        except StoreUnavailable as error:
            reason = str(error)
    if isinstance(found, EmulatorNotFound) or reason:
        if wanted == "firestore":
            raise Misconfigured(f"There is no Firestore emulator: {reason}. {INSTALL_HINT}")
        yield ChosenStore("sqlite", f"SQLite, for want of a Firestore emulator: {reason}. {INSTALL_HINT}")
        return
    with found:
        yield ChosenStore(
            "firestore",
            f"Google's Firestore emulator on {found.address}: {found.reason}. For the embedded store: --store sqlite",
            found.address,
        )
