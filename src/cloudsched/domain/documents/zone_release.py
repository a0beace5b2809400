"""With which release of the time zone data a deployment's tasks are planned."""

from __future__ import annotations

from typing import ClassVar, Final

from cloudsched.domain.documents.document import Instant  # noqa: TC001 - a field of the model
from cloudsched.domain.documents.record import Record

ZONE_RELEASE_ID: Final = "last"


class ZoneRelease(Record):
    """The newest release that any process of the deployment has had (``zones/last``).

    Its `updated_at` is when a process that has it was seen last.
    """

    collection: ClassVar[str] = "zones"
    is_listed_by_owner: ClassVar[bool] = False

    release: str
    """The IANA release, such as ``2026a``. A later one is greater."""
    fingerprints: str = ""
    """Of each zone: its name and its fingerprint, one a line. Empty for the first release: nothing came before it."""
    rolled_back: str = ""
    """A later release that was in use before, and no longer is."""
    since: Instant
    """When a process had it first."""
    walks: int = 0
    """How many walks over all active tasks are done."""
    after: str | None = None
    """The page token after which the walk continues."""
    moved: int = 0
    """How many tasks were planned again."""
