"""What is stored of a person beside their contacts: secrets, the key of links, feeds, jobs and exports."""

from __future__ import annotations

import hashlib
from typing import ClassVar, Final, Literal

from pydantic import Field

from cloudsched.domain.documents.category import Category, Labels
from cloudsched.domain.documents.document import Instant, WireModel
from cloudsched.domain.documents.record import Record, secret_hash


class SigningSecret(WireModel):
    """A secret that signs messages to a webhook."""

    url: str
    value: str
    """The secret as the receiver has it: ``whsec_`` and Base64."""
    until: Instant | None = None
    """The time until which it signs, if a newer one has replaced it."""


class ContactSecrets(Record):
    """A person's secrets. The id is the owner."""

    collection: ClassVar[str] = "contactSecrets"

    webhook_secrets: tuple[SigningSecret, ...] = ()
    """The newest first. Some of earlier URLs are kept: a change to another one may still be refused."""


class LinkKey(Record):
    """The key that signs the links in mails. ``linkKeys/current``.

    It is made once and stays: links have to work for as long as people keep mails. So it is not the
    secret that signs dispatches, which is rotated.
    """

    collection: ClassVar[str] = "linkKeys"
    is_listed_by_owner: ClassVar[bool] = False

    value: str


JobKind = Literal["erase", "export"]


MAX_PART_BYTES = 400_000
"""The most bytes of one part of an export, so that its document stays below 1 MiB."""


ExportSection = Literal["contacts", "tasks", "inbox", "usage"]
LAST_SECTION: Final = "usage"


class ExportCursor(WireModel):
    """The progress of an export. What is not below it yet is read again if its process dies."""

    section: ExportSection = "contacts"
    page_token: str | None = None
    parts: int = 0
    """The number of parts that are complete."""


class PersonJob(Record):
    """The latest job of a kind for a person. ``personJobs/{id}``."""

    collection: ClassVar[str] = "personJobs"
    is_listed_by_owner: ClassVar[bool] = False

    kind: JobKind
    task_id: str
    """The task that does it."""
    cursor: ExportCursor = ExportCursor()
    finished_at: Instant | None = None


class ExportPart(Record):
    """A piece of an export: lines of JSON. ``exportParts/{id}``."""

    collection: ClassVar[str] = "exportParts"

    text: str


def job_id(kind: JobKind, owner: str) -> str:
    """Return the id of a person's job."""
    return secret_hash("job", kind, owner)


def part_id(task_id: str, number: int) -> str:
    """Return the id of a part of the export that a task makes."""
    return f"{task_id}-{number:06}"


class Feed(Record):
    """The contents of one feed."""

    collection: ClassVar[str] = "feeds"
    is_exported: ClassVar[bool] = True
    max_per_owner: ClassVar[int] = 20

    categories: tuple[Category, ...] = Field(default=(), max_length=len(Category))
    """Only tasks of these categories, or of all categories if empty."""
    labels: Labels = ()
    """Only tasks that have all of these labels."""


def feed_id(secret: str) -> str:
    """Return the id of the feed with a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
