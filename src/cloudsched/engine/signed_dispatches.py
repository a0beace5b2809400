"""Send a task's dispatches, each signed, so that the executor can verify that they came from here.

Each dispatch carries an HMAC-SHA256 (RFC 2104) of its body, made with a secret that only the functions
know. The body says what may run, so a token authorizes only that, and the secret itself is never in a
queue. While a secret is being rotated, the previous one is still accepted, so that dispatches that wait
for weeks are not lost.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic_core import from_json

from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.transitions.wakeups import HORIZON, Dispatch
from cloudsched.engine.ports.clock import MAX_SKEW
from cloudsched.engine.ports.queue import Dispatcher, QueueMessage
from cloudsched.engine.tracing import trace_for
from cloudsched.errors import InvalidInput, Misconfigured, QueueUnavailable, Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.domain.documents.policy import Priority
    from cloudsched.domain.documents.task import Task

log: Final = own_logger(__name__)

HOP_MARGIN = timedelta(hours=1)
"""The least time from the last hop to its wake-up."""

_quote: Final = json.JSONEncoder().encode


class DispatchSender:
    """Signs dispatches and puts them into the queue. It has no state: every dispatch can be sent again."""

    defers_all: ClassVar[bool] = False
    """True if it sends none by design, so that a deferred one is no sign of an outage."""

    def __init__(self, dispatcher: Dispatcher, keys: SigningKeys) -> None:
        self._dispatcher = dispatcher
        self._keys = keys

    def send(self, task: Task, wakeups: Iterable[Dispatch], now: datetime, *, repair: int = 0) -> int:
        """Create a dispatch for each wake-up, and return how many there were. Raises QueueUnavailable."""
        channel = None if task.delivery is None else task.delivery.channel
        sent = 0
        for wake in wakeups:
            self.send_dispatch(dispatch_or_hop(task, wake, now, repair=repair), task.priority, channel)
            sent += 1
        return sent

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
        # guard: hop number
        hop = dispatch_or_hop(task, later, now, hop=dispatch.hop + 1, clock_lag=clock_lag)
        self.send_dispatch(hop, task.priority, None if task.delivery is None else task.delivery.channel)

    def send_body(self, name: str, body: bytes, at: datetime, priority: Priority) -> None:
        """Create a dispatch that wakes no task, but carries something else to the executor."""
        self._dispatcher.create(QueueMessage(name, at, body, self._keys.sign(body), priority))

    def send_dispatch(self, dispatch: Dispatch, priority: Priority, channel: str | None = None) -> None:
        """Create one dispatch."""
        name, body = encode_dispatch(dispatch, trace_for(dispatch.execution_id))
        is_hop = dispatch.at < dispatch.due_at  # it comes before its time, to be followed by another one
        message = QueueMessage(name, dispatch.at, body, self._keys.sign(body), priority, channel, is_hop)
        self._dispatcher.create(message)
        if log.isEnabledFor(logging.DEBUG):
            ids = {"taskId": dispatch.task_id, "executionId": dispatch.execution_id}
            log.debug("dispatched", extra={"action": "dispatched", **ids})


class DeferringSender(DispatchSender):
    """Sends nothing, for a process without a secret to sign with. The sweep sends what it makes due."""

    defers_all: ClassVar[bool] = True

    def __init__(self) -> None:
        """Take nothing."""

    def send_dispatch(self, dispatch: Dispatch, priority: Priority, channel: str | None = None) -> None:  # noqa: ARG002 - none is sent
        """Refuse it. Raises QueueUnavailable."""
        raise QueueUnavailable("The queue", "this process has no secret to sign with")


def dispatch_or_hop(
    task: Task,
    wakeup: Dispatch,
    now: datetime,
    *,
    hop: int = 0,
    repair: int = 0,
    clock_lag: timedelta = timedelta(0),
) -> Dispatch:
    """Return the dispatch to send now for a wake-up, or a hop at the horizon if it lies beyond.

    A hop comes at least `HOP_MARGIN` before the wake-up: one that waits in a long queue for less does not
    delay it. If this clock is behind the queue's by `clock_lag`, it is delivered that much later: it is
    due by this one then.
    """
    horizon = now + HORIZON
    at = max(now, wakeup.due_at)
    # guard: hop horizon
    if at > horizon:
        at = min(at - HOP_MARGIN, horizon)
    run = task.find_run(wakeup.execution_id) if task.runs else None
    was_held_back = wakeup.due_at <= now and run is None
    return wakeup._replace(
        revision=task.revision,
        after=(task.last_execution_id or "") if was_held_back else "",
        at=at + clock_lag,
        hop=hop,
        repair=repair,
        suspension_count=run.suspension_count if run else 0,
        turn_key="",
        turn=0,
    )


def encode_dispatch(dispatch: Dispatch, trace: str = "") -> tuple[str, bytes]:
    """Return the name of a dispatch, and its body: a JSON object that names the trace which it continues.

    The body begins with the identity of the run that it may start, and the name is a hash of that. So the
    same content has the same name, and names are spread evenly: sequential ones raise latency and errors
    (cloud.google.com/tasks/docs/reference/rest/v2/projects.locations.queues.tasks/create).
    """
    identity = (
        f'{{"taskId":{_quote(dispatch.task_id)},"revision":{dispatch.revision},"executionId":{_quote(dispatch.execution_id)}'
        f',"scheduledFor":"{_to_text(dispatch.scheduled_for)}","attempt":{dispatch.attempt}'
        f',"dueAt":"{_to_text(dispatch.due_at)}","after":{_quote(dispatch.after)},"hop":{dispatch.hop},"repair":{dispatch.repair}'
    )
    if dispatch.suspension_count:
        identity += f',"suspensionCount":{dispatch.suspension_count}'
    if dispatch.turn_key:
        identity += f',"lockKey":{_quote(dispatch.turn_key)}'
    if dispatch.turn:
        identity += f',"lockGrant":{dispatch.turn}'
    delivery = f',"at":"{_to_text(dispatch.at)}"'
    if trace:
        delivery += f',"trace":{_quote(trace)}'
    digest = hashlib.sha256(f"{identity}}}".encode()).hexdigest()
    return f"{digest[:32]}-{dispatch.task_id}", f"{identity}{delivery}}}".encode()


def open_dispatch(body: bytes, token: str, keys: SigningKeys) -> Dispatch:
    """Verify and read a dispatch that was delivered. Raises Unauthenticated, or InvalidInput."""
    keys.verify(body, token)
    try:
        return parse_dispatch(from_json(body, cache_strings="keys"))
    except ValueError as error:
        hint = "Only cloudsched creates dispatches."
        raise InvalidInput("(body)", f"is not a dispatch: {error}", hint) from error


def parse_dispatch(data: dict[str, Any]) -> Dispatch:
    """Read the body of a dispatch. Raises ValueError if it is none."""
    try:
        texts = data["taskId"], data["executionId"], data["after"], data.get("lockKey", ""), data.get("trace", "")
        instants = data["scheduledFor"], data["dueAt"], data["at"]
        counts = data["hop"], data["repair"], data.get("suspensionCount", 0), data.get("lockGrant", 0)
        numbers = data["revision"], data["attempt"], *counts
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a dispatch has a field {error}") from error

    if not {*map(type, (*texts, *instants))} <= {str}:
        raise ValueError("taskId, executionId, scheduledFor, dueAt, at, after and lockKey are strings")
    if not {*map(type, numbers)} <= {int} or min(numbers) < 0:
        raise ValueError("revision, attempt, hop, repair, suspensionCount and lockGrant are whole numbers")
    scheduled_for, due_at, delivered_at = map(datetime.fromisoformat, instants)
    if scheduled_for.tzinfo is None or due_at.tzinfo is None or delivered_at.tzinfo is None:
        raise ValueError("scheduledFor, dueAt and at name their offset from UTC")

    task_id, execution_id, after, turn_key, trace = texts
    revision, attempt, hop, repair, suspension_count, turn = numbers
    return Dispatch(
        task_id=task_id,
        revision=revision,
        execution_id=execution_id,
        scheduled_for=scheduled_for,
        attempt=attempt,
        due_at=due_at,
        at=delivered_at,
        after=after,
        hop=hop,
        repair=repair,
        suspension_count=suspension_count,
        turn_key=turn_key,
        turn=turn,
        trace=trace,
    )


@lru_cache(maxsize=100)  # a dispatch has most of its instants three times
def _to_text(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")


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

    def verify(self, body: bytes, token: str) -> None:
        """Check a token in constant time, however much of it is correct. Raises Unauthenticated."""
        if not token:
            raise Unauthenticated(f"The {self.purpose} carries no token.")
        encoded_token = token.encode("utf-8", "surrogatepass")
        is_valid = False
        for secret in (self.current, self.previous):
            if secret is not None:
                is_valid |= hmac.compare_digest(self.sign(body, secret).encode(), encoded_token)
        if not is_valid:
            raise Unauthenticated(f"The {self.purpose}'s token does not match its body.")

    def sign(self, body: bytes, secret: str | None = None) -> str:
        """Return the token for the body of a dispatch, or of whatever else the purpose names."""
        # `hmac.digest` would let another thread run, and wait for Python's lock longer than it computes.
        signature = _begin_signature(secret or self.current, self.purpose).copy()
        signature.update(body)
        return f"v1={signature.hexdigest()}"


@lru_cache(maxsize=8)
def _begin_signature(secret: str, purpose: str) -> hmac.HMAC:
    return hmac.new(secret.encode(), f"cloudsched {purpose} v1\n".encode(), "sha256")
