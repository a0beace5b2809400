"""Links in mails by which a person snoozes what a mail is about, without signing in.

A link is for one owner, one task and one execution, and for a day. It does what its owner could do at the API, and no
more: it is judged when it is followed. Once anything of the task has run after that execution, the link is over: what
has run then sends a mail of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.authority import SYSTEM_OWNER, EventSender, Requesters, SenderRole
from cloudsched.domain.transitions.manual_runs import require_latest
from cloudsched.domain.transitions.request_marks import RequestMark
from cloudsched.domain.transitions.requirements import require_snoozable
from cloudsched.engine.handlers.user_access import require_user_start
from cloudsched.engine.ports.authority import Authority
from cloudsched.errors import Forbidden, NotAllowed, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.people.link_tokens import LinkTokens
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.tasks.scheduler import Scheduler

VALID_FOR: Final = timedelta(days=1)
"""How long after the mail was sent its link works."""
_PURPOSE: Final = "snooze"


@dataclass(frozen=True, slots=True)
class SnoozeLink:
    """What a link is for."""

    owner: str
    task_id: str
    created_at: str
    """When the task was created: one that has its id later is another one."""
    execution_id: str
    until: int
    """When the link ends, in seconds since 1970."""

    def is_of(self, task: Task) -> bool:
        """Return whether a task is the one that the link is for."""
        return task.owner == self.owner and task.created_at.isoformat() == self.created_at


class SnoozeLinks:
    """Makes such links, and does what they say."""

    def __init__(self, tokens: LinkTokens, store: Store, clock: Clock, registry: Registry) -> None:
        self._tokens = tokens
        self._store = store
        self._clock = clock
        self._registry = registry

    def make(self, root: str, owner: str, task_id: str, execution_id: str) -> str | None:
        """Return the address of a link; None if its owner could not snooze that execution now. One read."""
        stored = self._store.load(task_id)
        if stored is None or stored.task.deleted_at is not None or stored.task.owner != owner or owner == SYSTEM_OWNER:
            return None
        try:
            require_snoozable(stored.task)
            require_latest(stored.task, execution_id)
            require_user_start(stored.task, self._registry)
        except (NotAllowed, Forbidden):
            return None
        until = int((self._clock.now() + VALID_FOR).timestamp())
        content = [owner, task_id, stored.task.created_at.isoformat(), execution_id, until]
        return f"{root}/v1/links/snooze/{self._tokens.write(_PURPOSE, content)}"

    def read(self, token: str) -> SnoozeLink:
        """Return what a link is for, by the last part of its path. Raises NotFound if it is forged, or over."""
        try:
            link = SnoozeLink(*self._tokens.read(_PURPOSE, token))
        except TypeError:
            raise NotFound("link", "…") from None
        if not self._is_valid(link):
            raise NotFound("link", "…")
        return link

    def follow(self, token: str, duration: timedelta, scheduler: Callable[[], Scheduler]) -> Task:
        """Snooze what a link is for, once; return the task.

        Raises:
            NotFound: The link is forged or over, or its task is gone.
            NotAllowed: It is paused or cancelled, or has run again since.
            Forbidden: Its owner may not start it.
            QuotaExceeded: It would start again a task that has ended, and its owner has no room for one more.
        """
        link = self.read(token)

        def check(task: Task) -> None:
            if not link.is_of(task):
                raise NotFound("task", task.id)

        by = Authority(
            Requesters.USERS,
            EventSender(role=SenderRole.OWNER, subject=f"user:{link.owner}", via="link:mail"),
            owner=link.owner,
            is_valid=lambda: self._is_valid(link),
            authorize=check,
        )
        mark = RequestMark.of_name(["link", link.execution_id])
        until = self._clock.now() + duration
        return scheduler().manual_runs.snooze(link.task_id, until, by, mark, latest=link.execution_id)

    def _is_valid(self, link: SnoozeLink) -> bool:
        return self._clock.now().timestamp() < link.until
