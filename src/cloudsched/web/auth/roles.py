"""Roles and their rights, in one table.

``docs/guides/access.md`` lists what each of them sees, changes and works on.

Admins and delegates may act for a user: such a request has exactly the authority of that user, and is
recorded as both.

To work on a task is to claim one of its runs from a queue and to report on it. A worker may be limited to
some queues, to one owner, to both or to neither.

Callers that see only their own tasks get the same response for another owner's task as for one that does
not exist.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudsched.domain.documents.authority import (
    ANONYMOUS,
    MAX_OWNER,
    RESERVED_SUBJECTS,
    SYSTEM_OWNER,
    EventSender,
    Requesters,
    SenderRole,
    is_subject,
)
from cloudsched.domain.documents.document import complete_table
from cloudsched.errors import Forbidden, InvalidInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable


class Right(StrEnum):
    """The kind of access that an operation needs."""

    READ = "read"
    WRITE = "write"
    WORK = "work"
    """Claim runs from queues, and report on them."""
    QUEUES = "see queues"
    """See what waits in queues: a worker, only what it may claim."""


class Role(StrEnum):
    """The role of a caller."""

    USER = "user"
    READER = "reader"
    VIEWER = "viewer"
    ADMIN = "admin"
    WORKER = "worker"
    DELEGATE = "delegate"
    """A server that acts only for users whom it has authenticated."""


class _Grant(NamedTuple):
    rights: frozenset[Right]
    sees_own: bool = False
    """True if it sees only its own tasks, and so needs an owner."""
    sees_all: bool = False
    sends_as: SenderRole | None = None
    """The role in which it sends events. None if it sends none."""
    acts_for_users: bool = False
    """True if it may act for any user, with that user's authority."""


_GRANTS: Final = complete_table(
    Role,
    {
        Role.USER: _Grant(frozenset(Right), sees_own=True, sends_as=SenderRole.OWNER),
        Role.READER: _Grant(frozenset({Right.READ, Right.QUEUES}), sees_own=True),
        Role.VIEWER: _Grant(frozenset({Right.READ, Right.QUEUES}), sees_all=True),
        Role.ADMIN: _Grant(frozenset(Right), sees_all=True, sends_as=SenderRole.ADMIN, acts_for_users=True),
        Role.WORKER: _Grant(frozenset({Right.WORK, Right.QUEUES}), sends_as=SenderRole.WORKER),
        Role.DELEGATE: _Grant(frozenset(), acts_for_users=True),
    },
)
ON_BEHALF_OF: Final = "X-On-Behalf-Of"
"""The header in which a server names the user for whom it acts, in percent-encoded UTF-8 as in a URL."""
_DELEGATES: Final = tuple(role for role in Role if _GRANTS[role].acts_for_users)
OWNER_ROLES: Final = frozenset(role for role in Role if _GRANTS[role].sees_own)
"""The roles that see only their own tasks, and so need an owner."""


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller.

    Attributes:
        subject: The caller's name in the log: ``user:…``, ``account:…`` or ``key:…``.
        owner: The caller as an owner of tasks, or, for a worker, the only owner whose tasks it works on. None
            for a server without an owner.
        queues: The queues that a worker works on. All of them if empty.
        verified_email: The e-mail address that the caller's ID token has as verified.
        via: The server that acts for the subject, as the log names it. None if the subject sent the request.
        until: The end of the credential, in seconds since 1970. None if it does not end, as that of a key.
    """

    subject: str
    role: Role
    owner: str | None
    queues: frozenset[str] = frozenset()
    verified_email: str | None = None
    via: str | None = None
    until: float | None = field(default=None, compare=False)

    def acting_for(self, user: str) -> Caller:
        """Return a user for whom this caller acts, with exactly that user's authority.

        Acting for oneself changes nothing. Raises Forbidden, or InvalidInput if no user can have that id.
        """
        if self.role in OWNER_ROLES and self.owner == user:
            return self
        if not _GRANTS[self.role].acts_for_users:
            raise Forbidden(f"The role {self.role} acts for nobody else; only {' and '.join(_DELEGATES)} do.")
        if not is_subject(user):
            raise InvalidInput(ON_BEHALF_OF, f"names nobody: {describe_subject(user)}")
        return Caller(f"user:{user}", Role.USER, user, via=self.subject, until=self.until)

    @property
    def visible_owner(self) -> str | None:
        """Return the only owner whose tasks the caller sees. None if it sees all."""
        return None if _GRANTS[self.role].sees_all else self.owner

    @property
    def requesters(self) -> Requesters:
        """Return whether the caller counts as a user or as a server for the `access` of handlers."""
        return Requesters.SERVERS if self.role is Role.ADMIN else Requesters.USERS

    @property
    def sender(self) -> EventSender | None:
        """Return the caller as the actor who changes tasks and sends events. None if the role does neither."""
        role = _GRANTS[self.role].sends_as
        if role is None:
            return None
        return EventSender(role=role, subject=self.subject, via=self.via)

    def require(self, right: Right) -> None:
        """Check that the role has a right. Raises Forbidden."""
        if self.role in OWNER_ROLES and self.owner is None:
            raise Forbidden(f"The role {self.role} sees only its own tasks, and this caller owns none.")
        if self.role in OWNER_ROLES and not is_subject(self.owner):
            raise Forbidden(describe_subject(self.owner))
        if self.role is Role.DELEGATE:
            hint = f"name in {ON_BEHALF_OF} the user it acts for"
            raise Forbidden(f"The role {self.role} does nothing by itself: {hint}.")
        if not self.has_right(right):
            raise Forbidden(f"The role {self.role} may not {right}.")

    def has_right(self, right: Right) -> bool:
        """Return whether the role has a right."""
        return right in _GRANTS[self.role].rights

    def can_see(self, owner: str) -> bool:
        """Return whether the caller may see an owner's tasks."""
        return self.visible_owner is None or self.visible_owner == owner

    def can_work_on(self, queue: str | None) -> bool:
        """Return whether the caller may work on a queue's tasks, or with None, on tasks without a queue."""
        return not self.queues or queue in self.queues

    def require_queue(self, queue: str) -> None:
        """Check that the caller may work on a queue. Raises Forbidden."""
        if not self.can_work_on(queue):
            raise Forbidden(f"This worker works on {', '.join(sorted(self.queues))}, and on no other queue.")

    def resolve_owner(self, requested: object) -> object:
        """Return the owner of a new task or of tasks to list: the requested one or the caller. Raises Forbidden."""
        if requested is None:
            return self.owner
        if self.visible_owner is not None and requested != self.visible_owner:
            raise Forbidden("You can name only yourself as the owner; omit it, or give your own id.")
        return requested

    def resolve_listed_owner(self, requested: str | None) -> str | None:
        """Return the owner for a list: the requested one or the caller, None for all. Raises Forbidden."""
        if self.visible_owner is None:
            return requested
        return str(self.resolve_owner(requested))

    def resolve_record_owner(self, requested: str | None) -> str:
        """Return the owner of a calendar or script: the requested one, the caller or `system`. Raises Forbidden."""
        if self.visible_owner is None:
            return requested or SYSTEM_OWNER
        return str(self.resolve_owner(requested))

    def require_inbox(self, owner: str) -> None:
        """Check that the caller may see an inbox. Raises NotFound if not, even for an inbox that exists."""
        if not self.can_see(owner):
            raise NotFound("inbox", owner)


def describe_subject(subject: object) -> str:
    """Return what is wrong with a subject that no user can have."""
    if isinstance(subject, str) and subject in RESERVED_SUBJECTS:
        return f"{subject!r} owns what belongs to no user, and no user can be it."
    return (
        f"No user can be called {str(subject)[:140]!r}: an id has 1 to {MAX_OWNER} characters, no slash and "
        "no control character, and is no name that Firestore reserves."
    )


def parse_role(text: str) -> tuple[Role, frozenset[str]]:
    """Parse a role from the settings: ``admin``, or ``worker@gpu+render`` for a worker of those queues.

    The message of its ValueError does not repeat the text, which may be a misplaced secret.
    """
    name, has_queues, listed = text.partition("@")
    if name not in set(Role):
        raise ValueError(f"its role must be one of {', '.join(Role)}")
    role = Role(name)
    queues = listed.split("+") if has_queues else []
    if queues and role is not Role.WORKER:
        raise ValueError("only a worker has queues")
    if not all(_QUEUE.fullmatch(queue) for queue in queues):
        raise ValueError("a queue's name has letters, digits, hyphens and underscores, at most 64")
    return role, frozenset(queues)


def format_role(role: Role, queues: Iterable[str]) -> str:
    """Return a role as text that `parse_role` accepts."""
    listed = "+".join(sorted(queues))
    return f"{role}@{listed}" if listed else str(role)


_QUEUE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The pattern of a task's queue, repeated because settings are parsed without pydantic."""

ANONYMOUS_ADMIN: Final = Caller(ANONYMOUS, Role.ADMIN, None)
"""The caller of an open API, as on the local stack."""
NOBODY: Final = Caller("nobody", Role.READER, "")
"""The caller of an operation without a credential, who sees only what the secret of a link or a feed shows."""
