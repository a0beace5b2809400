"""The models of workers' requests; `request_bodies` has all others."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from cloudsched.domain.documents.document import Duration, WireModel
from cloudsched.domain.documents.log_lines import MAX_LINES
from cloudsched.domain.documents.pull import MAX_SKILLS, Skill
from cloudsched.domain.documents.task import MAX_COUNT, MAX_NAME, MAX_RETENTION, Owner
from cloudsched.engine.handlers.context import MAX_NOTICES
from cloudsched.engine.pull.offers import MAX_CLAIMS
from cloudsched.web.api.request_bodies import MAX_HANDLERS, InputInstant

Amount = Annotated[int, Field(strict=True, ge=0, le=MAX_COUNT)]
MAX_SENT_LINES: Final = 5 * MAX_LINES
"""How many log lines one request may have; of more than `MAX_LINES` the latest are kept."""
Delay = Annotated[Duration, Field(ge=timedelta(0), le=MAX_RETENTION)]


class ClaimRequest(WireModel):
    """What a worker can run, and how much of it to claim."""

    worker: Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,128}$")] = "worker"
    """The worker's name, for the records."""
    skills: Annotated[tuple[Skill, ...], Field(max_length=MAX_SKILLS)] = ()
    """The worker's skills: it may claim tasks that require one of them, and tasks that require none."""
    handlers: (
        Annotated[
            tuple[Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME)], ...],
            Field(max_length=MAX_HANDLERS),
        ]
        | None
    ) = None
    """The handlers that the worker has; any if omitted."""
    owner: Owner | None = None
    """Claim only this owner's tasks; all that the worker may work on if omitted."""
    limit: Annotated[int, Field(strict=True, ge=1, le=MAX_CLAIMS)] = 1
    """The largest number of runs to claim."""


class ProgressItem(WireModel):
    """One progress note of a worker."""

    text: str
    """Truncated to 200 bytes of UTF-8."""
    at: InputInstant | None = None
    """When it was written; now if omitted."""


class LogItem(WireModel):
    """One line that a worker has logged."""

    text: str
    """The message, with its traceback if it has one; truncated to 1,000 bytes of UTF-8."""
    at: InputInstant | None = None
    """When it was logged; now if omitted. An instant outside the claim's time becomes the nearest one in it."""
    level: str = "INFO"
    """``DEBUG``, ``INFO``, ``WARNING``, ``ERROR``, ``CRITICAL``, or what else your program calls it. Lines below the
    claim's ``logs.level`` are not kept; unknown levels are. Truncated to 80 bytes of UTF-8."""
    logger: str = ""
    """The logger's name; truncated to 80 bytes of UTF-8."""


class LogReport(WireModel):
    """What a worker's handler has logged."""

    lines: Annotated[tuple[LogItem, ...], Field(max_length=MAX_SENT_LINES)] = ()
    """All lines that this claim has logged so far, or the last ones: the latest 200 with 16 KiB of text are kept."""
    left_out: Annotated[int, Field(strict=True, ge=0, le=MAX_COUNT)] = 0
    """How many earlier lines of this claim are not sent."""


class HeartbeatRequest(WireModel):
    """A worker is still running what it claimed."""

    lease_token: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    """The token from the claim, which proves that the run is the caller's."""
    progress: tuple[ProgressItem, ...] = ()
    """All progress notes so far. They replace the previous ones, and the last 50 are kept. If there are none, the
    previous ones stay."""
    logs: LogReport | None = None
    """What the handler has logged. It replaces what this claim reported before, unless that was more: then this request
    is an older one. Ignored if the claim has no ``logs``."""


class AttemptUsage(HeartbeatRequest):
    """The progress and the cost of an attempt."""

    queries: Amount = 0
    """How many queries the attempt used."""
    tokens: Amount = 0
    """How many tokens the attempt used, for example of a language model."""


class NoticeItem(WireModel):
    """A message for the owner's inbox."""

    title: str
    """Truncated to 200 bytes of UTF-8."""
    body: str


class CompleteRequest(AttemptUsage):
    """The work is done."""

    status: Literal["SUCCEEDED", "CANCELLED"] = "SUCCEEDED"
    """``CANCELLED`` if there was nothing left to do."""
    content: Any = None
    """The result of a run that ``SUCCEEDED``: any JSON of at most 512 KiB, and 900 KiB as Firestore counts it."""
    notices: Annotated[tuple[NoticeItem, ...], Field(max_length=MAX_NOTICES)] = ()
    """Messages for the owner's inbox, if the run ``SUCCEEDED``."""
    message: str | None = None
    """Why the run is ``CANCELLED``; truncated to 2,000 bytes of UTF-8."""


class AttemptError(WireModel):
    """What went wrong."""

    type: Annotated[str, StringConstraints(min_length=1)]
    """The exception's class, or an equivalent; truncated to 200 bytes of UTF-8."""
    message: str
    """Truncated to 2,000 bytes of UTF-8."""
    traceback: str | None = None
    """The last 4,000 bytes of UTF-8 are kept."""


class FailRequest(AttemptUsage):
    """The attempt has failed."""

    error: AttemptError
    is_final: Annotated[bool, Field(strict=True)] = False
    """Whether this was the last attempt; otherwise the task's retry policy decides."""
    retry_after: Delay | None = None
    """When the next attempt starts, if there is one, instead of the policy's delay."""


class ReleaseRequest(HeartbeatRequest):
    """The run is given back."""

    reason: str | None = None
    """Why; truncated to 2,000 bytes of UTF-8."""
    after: Delay | None = None
    """When the run is offered again; if omitted, at once and in its old position."""
