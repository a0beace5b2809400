"""The callers who request something: the names that users can have, and the authority on which they ask.

A user's subject is the owner of what is theirs, and so one segment of a path in Firestore. It is never a name
that the system uses for itself: a user of that name would own the system's documents. The rule is the same
for Firebase users, API keys and, beside it, ``infra/firestore.rules``. Users may ask for less than servers.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.document import InputModel

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

SYSTEM_OWNER: Final = "system"
"""The owner of all that belongs to the system rather than to a user. No user can have this name."""
ANONYMOUS: Final = "anybody"
"""The subject of all who use an open API, as on the local stack."""
RESERVED_SUBJECTS: Final = frozenset({SYSTEM_OWNER})
"""The names that no user can have, although tasks may have them as their owner."""


def say_subject(subject: str | None) -> str:
    """Return who did something, for people. None is the app's own code."""
    return "somebody without sign-in" if subject == ANONYMOUS else subject or "the app's own code"


MAX_OWNER: Final = 128
"""The longest owner, in characters."""
OWNER_PATTERN: Final = rf"[^/\x00-\x1f\x7f]{{1,{MAX_OWNER}}}"
"""An owner: neither empty nor longer, without slashes and ASCII's control characters."""
_SUBJECT: Final = re.compile(rf"[^/\x00-\x1f\x7f-\x9f\ud800-\udfff]{{1,{MAX_OWNER}}}")
"""A subject has no other control character, and no half of a surrogate pair."""


def is_reserved_name(name: str) -> bool:
    """Return whether Firestore keeps a name for itself: ``.``, ``..`` and ``__anything__``.

    Source: firebase.google.com/docs/firestore/quotas, "Constraints on document IDs".
    """
    return name in {".", ".."} or (name.startswith("__") and name.endswith("__"))


def reject_reserved_name(name: str) -> str:
    """Return a name. Raises ValueError if Firestore keeps it for itself."""
    if name in {".", ".."} or (name.startswith("__") and name.endswith("__")):  # a call cheaper
        raise ValueError("is a name that Firestore reserves ('.', '..' and '__anything__')")
    return name


def is_subject(name: object) -> bool:
    """Return whether a user can be called that: it can own tasks, and is none of the `RESERVED_SUBJECTS`."""
    if not isinstance(name, str) or name in RESERVED_SUBJECTS or is_reserved_name(name):
        return False
    return _SUBJECT.fullmatch(name) is not None


class Requesters(StrEnum):
    """The group that a request comes from, or of a handler, the group that may name it."""

    USERS = "users"
    """Users of the API, who see only their own tasks. Servers may do whatever users may."""
    SERVERS = "servers"
    """The app's own code, service accounts and keys with the role ``admin``."""


class SenderRole(StrEnum):
    """The role of an event's sender towards the task."""

    OWNER = "owner"
    """The user who owns the task."""
    ADMIN = "admin"
    """A caller with the role ``admin``, or the app's own code."""
    WORKER = "worker"
    """A worker, whose events count only where a handler says so."""
    PERSON = "person"
    """A user who does not own the task. Their events count only where a handler asks for them by name."""


PERSON: Final = "user:"
"""What precedes a user's name where a handler asks for their events."""


def list_people(senders: Iterable[str]) -> list[str]:
    """Return the users among those whose events count."""
    return [each.removeprefix(PERSON) for each in senders if each.startswith(PERSON)]


class EventSender(InputModel):
    """The sender of an event."""

    role: SenderRole
    subject: str | None = None
    """The caller as the log names them: ``user:…``, ``account:…`` or ``key:…``. None for the app's own
    code."""
    via: str | None = None
    """The server that acted for them, named likewise, or None if they called the API themselves."""
    user: str | None = None
    """The user whose key sent it, as ``user:…``, where the subject is the key."""

    @property
    def person(self) -> str | None:
        """The user who sent it, as ``user:…``, or None if it was a server."""
        is_user = self.subject is not None and self.subject.startswith(PERSON)
        return self.subject if is_user else self.user

    @property
    def author(self) -> Requesters | None:
        """The author to record for what this sender gives a run. None for servers, as in stored documents."""
        if self.role is SenderRole.ADMIN:
            return None
        return Requesters.USERS

    def counts_for(self, senders: Container[str]) -> bool:
        """Return whether it is among those whose events count: by its role, or by name."""
        return self.role in senders or (self.person is not None and self.person in senders)

    @property
    def side(self) -> str:
        """The side that they are on: what a task remembers of one side, no other side can make it forget."""
        if self.via is None:
            return self.role
        return f"{self.role} by server"


DEFAULT_SENDERS: Final[tuple[str, ...]] = (SenderRole.OWNER, SenderRole.ADMIN)
"""The senders whose events a handler takes if it names none."""
TRUSTED_CODE: Final = EventSender.model_construct(role=SenderRole.ADMIN)
"""The sender of events that the app's own code sends."""
