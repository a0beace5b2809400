"""The authority by which a task is read or changed: made once, at the boundary, and required below it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.authority import TRUSTED_CODE, EventSender, Requesters
from cloudsched.errors import Forbidden, Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.documents.task import Task


@dataclass(frozen=True, slots=True)
class Authority:
    """The identity behind a request, and what it may do.

    Nothing takes one by default: code that has none cannot call what needs it, and trusted code says `OWN_CODE`.

    Attributes:
        requesters: A user or a server. This decides which handlers, fields, priorities and queues may be named, which
            tasks may be started, and whether quotas hold.
        sender: The one who acts, and through which server, for histories and events. None for one who may only look.
        owner: The only owner whose tasks, calendars, scripts and so on they may make or change. None for all owners'.
        is_valid: Returns True while the credential holds. It is asked before each change, so that long work, such as a
            batch or a model's draft, changes nothing after the credential's end.
        authorize: Called with each task before it is returned or changed. If it raises, the task is not changed. It
            sees exactly the state that a change replaces, even if others change the task at the same time.
    """

    requesters: Requesters
    sender: EventSender | None
    owner: str | None
    is_valid: Callable[[], bool]
    authorize: Callable[[Task], None]
    is_user: bool = field(init=False)
    """True if a user asks, who may do less than a server."""
    has_quotas: bool = field(init=False)
    """True if the owner's quotas must have room for what it creates and starts again."""
    author: Requesters | None = field(init=False)
    """The recorded author of what this authority writes. None for servers, as in stored documents."""

    def __post_init__(self) -> None:
        is_user = self.requesters is Requesters.USERS
        object.__setattr__(self, "is_user", is_user)
        object.__setattr__(self, "has_quotas", is_user)
        object.__setattr__(self, "author", Requesters.USERS if is_user else None)

    @property
    def actor(self) -> EventSender:
        """The one who acts. Raises Forbidden if they may only look."""
        if self.sender is None:
            raise Forbidden("Whoever asks may look, and change nothing.")
        return self.sender

    def require_valid(self) -> None:
        """Check that the credential still holds. Raises Unauthenticated."""
        if not self.is_valid():
            raise Unauthenticated("The credential has expired meanwhile; nothing more is changed with it.")

    def require_owner(self, owner: str) -> None:
        """Check that it may make or change something of an owner's now.

        Raises Forbidden or Unauthenticated.
        """
        self.require_valid()
        if self.sender is None or self.owner not in {None, owner}:
            raise Forbidden(f"{self.actor.subject} may change nothing of another owner's.")

    def require_author(self, what: str, author: Requesters | None) -> None:
        """Check that it may replace or delete what somebody stored: a user, not what a server did.

        Raises Forbidden.
        """
        if self.is_user and author is None:
            raise Forbidden(
                f"A server stored this {what} for its owner, who may use it, and not replace or delete it.",
            )

    def require_server(self) -> None:
        """Check that no user asks, for a change that only servers may make.

        Raises Forbidden or Unauthenticated.
        """
        self.require_valid()
        if self.is_user:
            raise Forbidden("Only an admin may change this.")

    def limit(self, check: Callable[[Task], None]) -> Authority:
        """Return this authority with a further check of each task. It can do no more than before."""

        def authorize(task: Task) -> None:
            self.authorize(task)
            check(task)

        return replace(self, authorize=authorize)


def _allow(_: Task) -> None:
    """Allow everything."""


OWN_CODE: Final = Authority(
    Requesters.SERVERS,
    TRUSTED_CODE,
    owner=None,
    is_valid=True.__bool__,
    authorize=_allow,
)
"""The app's own code, in a handler, a server or a command: it may do everything."""
