"""What the API knows of one of its operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.auth.roles import Right

if TYPE_CHECKING:
    from cloudsched.domain.documents.document import WireModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of the API."""

    name: str
    """The operation's id, and the key of the function that implements it."""
    tag: str
    """The group that it is listed in; see `TAGS`."""
    method: str
    path: str
    summary: str
    description: str
    """What a caller needs to know besides the summary, in CommonMark."""
    right: Right | None = Right.READ
    """The right that the caller needs; None for a public operation."""
    query: type[WireModel] = bodies.NoParameters
    body: type[WireModel] | None = None
    """The model of the request's JSON object, if it has one."""
    body_is_optional: bool = False
    is_patch: bool = False
    """Whether the body is a JSON merge patch."""
    accepts_idempotency_key: bool = False
    """Whether ``Idempotency-Key`` makes it safe to repeat."""
    is_conditional: bool = False
    """Whether it evaluates ``If-Match``."""
    success_statuses: tuple[int, ...] = (200,)
    response_schema: str | None = None
    """The schema of a successful response."""
    error_statuses: tuple[int, ...] = ()
    """The statuses of its problems besides those that every operation has."""
