"""Send a task's dispatches to the queue, each signed, so that the executor can verify that they came from here.

Each dispatch carries an HMAC-SHA256 (RFC 2104) of its body, made with a secret that only the functions
know. The body says what may run, so a token authorizes only that, and the secret itself is never in a
queue. While a secret is being rotated, the previous one is still accepted, so that dispatches that wait
for weeks are not lost.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.transitions.wakeups import Dispatch, dispatch_or_hop
from cloudsched.engine.ports.clock import MAX_SKEW
from cloudsched.engine.ports.queue import Dispatcher, QueueMessage
from cloudsched.engine.tracing import trace_for
from cloudsched.errors import Misconfigured, Unauthenticated

if TYPE_CHECKING:
    from cloudsched.domain.documents.policy import Priority
    from cloudsched.domain.documents.task import Task

log = own_logger(__name__)


class DispatchSender:
    """Signs dispatches and puts them into the queue. It has no state: every dispatch can be sent again."""

    def __init__(self, dispatcher: Dispatcher, keys: SigningKeys) -> None:
        self._dispatcher = dispatcher
        self._keys = keys

    def send(self, task: Task, wakeups: Iterable[Dispatch], now: datetime, *, repair: int = 0) -> int:
        """Create a dispatch for each wake-up, and return how many there were. Raises QueueUnavailable."""
        dispatches = [dispatch_or_hop(task, wake, now, repair=repair) for wake in wakeups]
        channel = None if task.delivery is None else task.delivery.channel
        for dispatch in dispatches:
            self.send_dispatch(dispatch, task.priority, channel)
        return len(dispatches)

    def send_hop(self, task: Task, dispatch: Dispatch, until: datetime, now: datetime) -> None:
        """Create the dispatch that follows one that came too early.

        The queue delivers nothing early by its own clock. A dispatch that is early by this process's
        clock shows that this clock is behind. Without an allowance, dispatches would follow each other
        until it has caught up. An operator may deliver one long before its time, so only a lag that
        clocks may have counts.
        """
        lag = max(dispatch.at - now, timedelta(0))
        later = dispatch._replace(due_at=until)
        clock_lag = lag if lag <= 2 * MAX_SKEW else timedelta(0)
        hop = dispatch_or_hop(
            task,
            later,
            now,
            hop=dispatch.hop + 1,
            clock_lag=clock_lag,
        )  # guard: hop number
        self.send_dispatch(hop, task.priority, None if task.delivery is None else task.delivery.channel)

    def send_body(self, name: str, body: bytes, at: datetime, priority: Priority) -> None:
        """Create a dispatch that wakes no task, but carries something else to the executor."""
        self._dispatcher.create(QueueMessage(name, at, body, self._keys.sign(body), priority))

    def send_dispatch(self, dispatch: Dispatch, priority: Priority, channel: str | None = None) -> None:
        """Create one dispatch."""
        name, body = dispatch.encode(trace_for(dispatch.execution_id))
        is_hop = dispatch.at < dispatch.due_at  # it comes before its time, to be followed by another one
        message = QueueMessage(name, dispatch.at, body, self._keys.sign(body), priority, channel, is_hop)
        self._dispatcher.create(message)
        if log.isEnabledFor(logging.DEBUG):
            ids = {"taskId": dispatch.task_id, "executionId": dispatch.execution_id}
            log.debug("dispatched", extra={"action": "dispatched", **ids})


MIN_SECRET_LENGTH = 16


@dataclass(frozen=True, slots=True)
class SigningKeys:
    """The secret that signs, and the previous one, which is still accepted. Neither appears in the repr.

    A signature for one purpose is not valid for another.
    """

    current: str = field(repr=False)
    previous: str | None = field(default=None, repr=False)
    purpose: str = "dispatch"

    def __post_init__(self) -> None:
        if any(len(secret) < MIN_SECRET_LENGTH for secret in (self.current, self.previous) if secret is not None):
            raise Misconfigured(
                f"A secret has at least {MIN_SECRET_LENGTH} characters. Make one with "
                "`python -c 'import secrets; print(secrets.token_urlsafe(32))'` and set CLOUDSCHED_SECRET."
            )

    def sign(self, body: bytes) -> str:
        """Return the token for the body of a dispatch, or of whatever else the purpose names."""
        return self._signature(self.current, body)

    def verify(self, body: bytes, token: str) -> None:
        """Check a token in constant time, however much of it is correct. Raises Unauthenticated."""
        if not token:
            raise Unauthenticated(f"The {self.purpose} carries no token.")
        encoded_token = token.encode("utf-8", "surrogatepass")
        secrets = [self.current, *([self.previous] if self.previous is not None else [])]
        matches = [hmac.compare_digest(self._signature(secret, body).encode(), encoded_token) for secret in secrets]
        if not any(matches):
            raise Unauthenticated(f"The {self.purpose}'s token does not match its body.")

    def _signature(self, secret: str, body: bytes) -> str:
        # `hmac.digest` would let another thread run, and wait for Python's lock longer than it computes.
        signature = _begin_signature(secret, self.purpose).copy()
        signature.update(body)
        return f"v1={signature.hexdigest()}"


@lru_cache(maxsize=8)
def _begin_signature(secret: str, purpose: str) -> hmac.HMAC:
    return hmac.new(secret.encode(), f"cloudsched {purpose} v1\n".encode(), "sha256")
