"""What is being done with all that is stored of a person: the export that is made of it, and its deletion."""

from __future__ import annotations

from typing import ClassVar, Literal

from cloudsched.domain.documents.document import Instant, WireModel
from cloudsched.domain.documents.person import secret_hash
from cloudsched.domain.documents.record import Record

JobKind = Literal["erase", "export"]
MAX_PART_BYTES = 400_000
"""How large one part of an export is, so that its document stays below 1 MiB."""


class ExportUsage(WireModel):
    """What a person has used, counted while it is exported."""

    tasks: int = 0
    executions: int = 0
    messages: int = 0
    queries: int = 0
    tokens: int = 0


class ExportCursor(WireModel):
    """How far an export has come. What follows is read again if its process dies."""

    section: Literal["contacts", "tasks", "inbox", "usage"] = "contacts"
    page_token: str | None = None
    parts: int = 0
    """How many parts are complete."""
    usage: ExportUsage = ExportUsage()


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
