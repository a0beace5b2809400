"""The port for records: documents that callers write as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.documents.record import Record
    from cloudsched.domain.transitions.commit import Version

R = TypeVar("R", bound="Record")


@dataclass(frozen=True, slots=True)
class VersionedRecord(Generic[R]):
    """A record as it was read, and its version."""

    record: R
    version: Version


def record_of(stored: VersionedRecord[R] | None) -> R | None:
    """Return the record that was read, or None if there was none."""
    return None if stored is None else stored.record


def version_of(stored: VersionedRecord[R] | None) -> Version | None:
    """Return the version that was read, which a write expects: None if there was no record."""
    return None if stored is None else stored.version


class RecordStore(Protocol):
    """Stores records, each under its kind and its id.

    * A write or a deletion takes effect only if the record still has the version that was read. Of any number of
      callers that expect the same version, exactly one succeeds.
    * A read that starts after a write has returned sees it.
    * A record that cannot be read (damaged, or of a newer version) is skipped in lists. Loading it is an error.
    """

    def load(self, kind: type[R], record_id: str) -> VersionedRecord[R] | None:
        """Return a record as it is now, or None. One document is read."""
        ...

    def write(self, record: Record, expected_version: Version | None) -> Version:
        """Write a record, and return its new version. Raises VersionConflict.

        `expected_version` is the version that was read. None means that the record must not exist.
        """
        ...

    def delete(self, kind: type[Record], record_id: str, expected_version: Version) -> None:
        """Delete a record. Raises VersionConflict if it has another version by now, or no longer exists."""
        ...

    def list_all(self, kind: type[R], *, limit: int, after: str = "") -> Sequence[R]:
        """Return the records of a kind, of all owners, by id, those after an id. Reads only those."""
        ...

    def list(self, kind: type[R], owner: str, *, limit: int, after: str = "") -> Sequence[R]:
        """Return an owner's records of a kind, by id, those after an id. Reads only those.

        Raises ValueError if no index has the owners of this kind (`Record.is_listed_by_owner`).
        """
        ...


def require_listed_by_owner(kind: type[Record]) -> None:
    """Check that an index has the owners of a kind of records. Raises ValueError."""
    if not kind.is_listed_by_owner:
        raise ValueError(f"No index has the owner of {kind.collection}: load them by their ids")
