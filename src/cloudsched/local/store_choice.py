"""Choose the local stack's store: the embedded one, or Google's Firestore emulator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from cloudsched.adapters.firestore.emulator import INSTALL_HINT, EmulatorNotFound, FirestoreEmulator, find_emulator
from cloudsched.config.settings import StoreKind
from cloudsched.errors import Misconfigured, StoreUnavailable

StoreChoice = Literal["auto", StoreKind]


@dataclass(frozen=True, slots=True)
class ChosenStore:
    """The chosen store, and why."""

    kind: StoreKind
    reason: str
    """The choice and its reason, and the way to get the other store, for people."""
    address: str | None = None
    """The Firestore emulator's ``host:port``."""


@contextmanager
def open_store(choice: StoreChoice, *, address: str | None, is_persistent: bool) -> Iterator[ChosenStore]:
    """Choose a store, and run the Firestore emulator, if it is that, for as long as the context lasts.

    Args:
        choice: The store that was asked for. ``auto`` takes the Firestore emulator if it is installed or running.
        address: The ``host:port`` of a Firestore emulator that already runs, if any.
        is_persistent: True if the tasks must survive the stack, which only the embedded store offers.

    Raises:
        Misconfigured: The store that was asked for is not available.
    """
    if choice == "firestore" and is_persistent:
        raise Misconfigured("The Firestore emulator stores nothing on disk. Omit --data, or use --store sqlite.")
    if choice == "sqlite" or is_persistent:
        reason = "as --store says" if choice == "sqlite" else "because of --data"
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
        if choice == "firestore":
            raise Misconfigured(f"There is no Firestore emulator: {reason}. {INSTALL_HINT}")
        yield ChosenStore("sqlite", f"SQLite, because there is no Firestore emulator: {reason}. {INSTALL_HINT}")
        return
    with found:
        yield ChosenStore(
            "firestore",
            f"Google's Firestore emulator on {found.address}: {found.reason}. For the embedded store: --store sqlite",
            found.address,
        )
