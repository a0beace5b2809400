"""Choose the store of the local stack: the embedded one, or Google's Firestore emulator."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloudsched.adapters.firestore.emulator import INSTALL_HINT, EmulatorNotFound, FirestoreEmulator, find_emulator
from cloudsched.errors import Misconfigured, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.config.settings import StoreChoice, StoreKind


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

    Only the embedded store is persistent. Raises Misconfigured if the store that was asked for is not
    available.
    """
    if choice == "firestore" and is_persistent:
        raise Misconfigured("The Firestore emulator stores nothing on disk. Omit --data, or use --store sqlite.")
    if choice == "sqlite" or is_persistent:
        reason = "as --store says" if choice == "sqlite" else "because of --data"
        yield ChosenStore("sqlite", f"SQLite, {reason}")
        return

    found = _start_emulator(address)
    if isinstance(found, FirestoreEmulator):
        with found:
            yield ChosenStore(
                "firestore",
                f"Google's Firestore emulator on {found.address}: {found.reason}. "
                "For the embedded store: --store sqlite",
                found.address,
            )
        return
    reason = f"there is no Firestore emulator: {found}. {INSTALL_HINT}"
    if choice == "firestore":
        raise Misconfigured(f"T{reason[1:]}")
    yield ChosenStore("sqlite", f"SQLite, because {reason}")


def _start_emulator(address: str | None) -> FirestoreEmulator | str:
    """Return the emulator that runs now, or the reason why none does."""
    found = find_emulator(address)
    if isinstance(found, EmulatorNotFound):
        return found.reason
    try:
        found.start()
    except StoreUnavailable as error:
        return str(error)
    return found
