"""The `Dispatcher` over Google Cloud Tasks or a local Cloud Tasks: one API call per dispatch.

Each priority has a queue of its own, whose rate and concurrency the operator sets: ``cloudsched`` for NORMAL,
``cloudsched-critical``, ``cloudsched-high`` and ``cloudsched-low``. So has each channel for deliveries, such
as ``cloudsched-email``, whose rate is what the provider allows. A priority that needs more dispatches a
second than one queue delivers has further queues, such as ``cloudsched-low-q2``, over which they are spread
by a hash of their names. Hops, which are early dispatches that only create the next one, have
``cloudsched-hops``, so that they do not delay what is due.

One queue is enough to start with: it takes the dispatches of those that do not exist.
"""

from __future__ import annotations

import time
import zlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import grpc  # type: ignore[import-untyped]  # grpcio ships no types

from cloudsched.adapters.google.backoff import Backoff
from cloudsched.adapters.google.channel import OVERLOAD_CODES, GoogleService, Message, open_channel, retry
from cloudsched.adapters.google.protobuf import build_messages
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.own_logger import own_logger
from cloudsched.errors import QueueUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.engine.ports.queue import QueueMessage

_SHARED_QUEUES = dict.fromkeys(("COMPLETION", "PING", "TELEGRAM", "SLACK"), "WEBHOOK")
"""The channels that have the queue of another one."""


def queue_id(queue: str, priority: Priority, number: int = 1) -> str:
    """Return the id of one of a priority's queues, counted from 1.

    `queue` is the id of the first NORMAL one.
    """
    if priority is Priority.NORMAL:
        first = queue
    else:
        first = f"{queue}-{priority.lower()}"
    return first if number == 1 else f"{first}-q{number}"


def channel_queue_id(queue: str, channel: str) -> str:
    """Return the id of the queue of a channel's deliveries. `queue` is the id of the NORMAL one."""
    return f"{queue}-{_SHARED_QUEUES.get(channel, channel).lower()}"


def hop_queue_id(queue: str) -> str:
    """Return the id of the queue of hops. `queue` is the id of the NORMAL one."""
    return f"{queue}-hops"


def list_queue_ids(queue: str, queues_per_priority: int = 1) -> list[str]:
    """Return the ids of all queues but those of channels."""
    numbers = range(1, queues_per_priority + 1)
    return [*(queue_id(queue, each, number) for each in Priority for number in numbers), hop_queue_id(queue)]


def choose_queues(queue: str, message: QueueMessage, queues_per_priority: int = 1) -> list[str]:
    """Return the id of a dispatch's queue, then those that take it if that one does not exist.

    The NORMAL one is last.

    The same dispatch has the same queue, so that the queue recognizes a repeated one.
    """
    number = zlib.crc32(message.name.encode()) % queues_per_priority + 1
    own = [queue_id(queue, message.priority, number), queue_id(queue, message.priority)]
    if message.channel is not None:
        own = [channel_queue_id(queue, message.channel)]
    hops = [hop_queue_id(queue)] if message.is_hop else []
    return list(dict.fromkeys([*hops, *own, queue_id(queue, Priority.NORMAL, number), queue]))


log: Final = own_logger(__name__)

TOKEN_HEADER = "X-Cloudsched-Token"  # noqa: S105 - the name of a header, not a token

DEADLINE = timedelta(seconds=5)
"""The longest time of creating one dispatch, retries included. It is short because a caller waits for it, and
the sweep sends whatever could not be created."""

DISPATCH_DEADLINE = timedelta(minutes=30)
"""The time that Cloud Tasks waits for the executor's response before it redelivers: the maximum it allows
(cloud.google.com/tasks/docs/reference/rest/v2/projects.locations.queues.tasks). The task's lease is
independent."""

ATTEMPT_TIMEOUT = timedelta(seconds=2.5)
"""The longest time of one attempt to create a dispatch before it is retried, within `DEADLINE`."""

_STATE_SECONDS = 2.0
"""The longest time of asking for a queue's state: the answer to a write waits for it."""

_RETRYABLE_CODES = OVERLOAD_CODES | {grpc.StatusCode.INTERNAL}
"""The codes after which CreateTask is retried. Google's clients never retry it, since that could create an
unnamed task twice. Our tasks have names, so a duplicate is refused with ALREADY_EXISTS."""

_MISSING_CODES = frozenset({grpc.StatusCode.NOT_FOUND, grpc.StatusCode.PERMISSION_DENIED})
"""The answers of Cloud Tasks for a queue that does not exist. Callers whose role covers only the other
queues, as the scripts grant it, get the latter."""
MISSING_SECONDS = 300.0
"""The seconds for which a queue that did not exist is not asked for again."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)

_SERVICE = GoogleService("cloudtasks.googleapis.com", ("https://www.googleapis.com/auth/cloud-platform",))
PACKAGE = "google.cloud.tasks.v2"
TABLE = r"""
enum HttpMethod HTTP_METHOD_UNSPECIFIED POST GET HEAD PUT DELETE PATCH OPTIONS
OidcToken service_account_email:string=1 audience:string=2
HttpRequest url:string=1 http_method:HttpMethod=2 headers:map(string)=3 body:bytes=4 \
oidc_token:OidcToken=6/authorization_header
Task name:string=1 http_request:HttpRequest=3/message_type schedule_time:Timestamp=4 dispatch_deadline:Duration=6
CreateTaskRequest parent:string=1 task:Task=2
GetQueueRequest name:string=1
enum QueueState STATE_UNSPECIFIED RUNNING PAUSED DISABLED
Queue name:string=1 state:QueueState=5
"""

_messages = build_messages(PACKAGE, TABLE)
CreateTaskRequest: Message = _messages["CreateTaskRequest"]
GetQueueRequest: Message = _messages["GetQueueRequest"]
Queue: Message = _messages["Queue"]
_RUNNING: int = Queue.DESCRIPTOR.file.enum_types_by_name["QueueState"].values_by_name["RUNNING"].number
POST: int = CreateTaskRequest.DESCRIPTOR.file.enum_types_by_name["HttpMethod"].values_by_name["POST"].number


class CloudTasksDispatcher:
    """A `Dispatcher` over Cloud Tasks queues."""

    def __init__(  # noqa: PLR0913 - each is a setting of its own
        self,
        *,
        project: str,
        location: str,
        queue: str,
        url: str,
        queues_per_priority: int = 1,
        emulator: str | None = None,
        invoker: str | None = None,
        audience: str | None = None,
        dispatch_deadline: timedelta = DISPATCH_DEADLINE,
        deadline: timedelta = DEADLINE,
        attempt_timeout: timedelta = ATTEMPT_TIMEOUT,
    ) -> None:
        """Open a channel. Nothing is sent before the first dispatch.

        The NORMAL priority's queue is `queue`, and the others' names begin with it. Without an `invoker`, no
        OIDC token is sent. The `audience` is the whole `url` unless given. Cloud Tasks waits for the executor
        for `dispatch_deadline`, 15 seconds to 30 minutes. A creation takes `deadline` at most, retries
        included.
        """
        self._location = f"projects/{project}/locations/{location}"
        self._queue = queue
        self._queues_per_priority = queues_per_priority
        self._missing: dict[str, float] = {}
        """The queues that did not exist, and until when that is taken for granted, by the monotonic clock."""
        self._deadline = deadline.total_seconds()
        self._attempt_seconds = attempt_timeout.total_seconds()
        self._template = _make_template(url, invoker, audience, dispatch_deadline)
        self._channel = open_channel(_SERVICE, emulator)
        self._create_task = self._bind_method("CreateTask", CreateTaskRequest)
        self._get_queue = self._channel.unary_unary(
            "/google.cloud.tasks.v2.CloudTasks/GetQueue",
            request_serializer=GetQueueRequest.SerializeToString,
            response_deserializer=Queue.FromString,
        )

    def create(self, message: QueueMessage) -> None:
        """Create a dispatch in one call. A name that already exists counts as created."""
        backoff = Backoff(self._deadline)
        *others, normal = choose_queues(self._queue, message, self._queues_per_priority)
        for name in others:
            if time.monotonic() < self._missing.get(name, 0.0):
                continue
            queue = f"{self._location}/queues/{name}"
            code = self._call(queue, message, backoff, _MISSING_CODES)
            if code not in _MISSING_CODES:
                return
            self._missing[name] = time.monotonic() + MISSING_SECONDS
            log.warning("queue missing", extra={"action": "queue_missing", "queue": name, "code": code.name})
        queue = f"{self._location}/queues/{normal}"
        if self._call(queue, message, backoff, frozenset({grpc.StatusCode.NOT_FOUND})) is grpc.StatusCode.NOT_FOUND:
            hint = f"create it with `gcloud tasks queues create {normal}`, and wait a minute"
            raise QueueUnavailable(f"The queue {queue}", f"it does not exist; {hint}")

    def find_paused(self, priority: Priority) -> str | None:
        """Return the first queue of a priority that is paused, or disabled. Raises QueueUnavailable.

        A queue that does not exist, or that this account may not see, counts as the one that takes its dispatches.
        """
        names = [queue_id(self._queue, priority, number + 1) for number in range(self._queues_per_priority)]
        states = {name: self._ask_state(name) for name in names}
        if None in states.values():
            states[self._queue] = self._ask_state(self._queue)
        known = {name: state for name, state in states.items() if state is not None}
        if not known:
            raise QueueUnavailable("The queue", "its state may not be read")
        return next((name for name, state in known.items() if state != _RUNNING), None)

    def _ask_state(self, name: str) -> int | None:
        """Return the state of a queue. None for one that is missing or hidden."""
        request = GetQueueRequest(name=f"{self._location}/queues/{name}")
        metadata = (("x-goog-request-params", f"name={quote(request.name, safe='')}"),)
        try:
            found = self._get_queue(request, timeout=_STATE_SECONDS, metadata=metadata)
        except grpc.RpcError as error:
            if error.code() in _MISSING_CODES:
                return None
            raise QueueUnavailable(f"The queue {request.name}", f"{error.code().name}: {error.details()}") from error
        return int(found.state)

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()

    def _build_request(self, queue: str, message: QueueMessage) -> Message:
        request = CreateTaskRequest(parent=queue)
        task = request.task
        task.CopyFrom(self._template)
        task.name = f"{queue}/tasks/{message.name}"
        since = message.at - _EPOCH
        task.schedule_time.seconds = since // _SECOND
        task.schedule_time.nanos = since.microseconds * 1000
        task.http_request.body = message.body
        task.http_request.headers[TOKEN_HEADER] = message.token
        return request

    def _call(
        self, queue: str, message: QueueMessage, backoff: Backoff, expected: frozenset[grpc.StatusCode]
    ) -> grpc.StatusCode:
        """Create a dispatch in a queue.

        Return OK, ALREADY_EXISTS or an expected code, and raise for any other one.
        """
        request = self._build_request(queue, message)
        try:
            retry(
                lambda left: self._create_task(request, min(left, self._attempt_seconds)),
                _RETRYABLE_CODES,
                backoff,
            )
        except grpc.RpcError as error:
            code = error.code()
            if code is grpc.StatusCode.ALREADY_EXISTS or code in expected:
                return code
            raise QueueUnavailable(f"The queue {queue}", f"{code.name}: {error.details()}") from error
        except ValueError as error:  # raised by gRPC if the channel is closed
            raise QueueUnavailable(f"The queue {queue}", str(error)) from error
        return grpc.StatusCode.OK

    def _bind_method(self, name: str, request: Message) -> Callable[[Message, float], None]:
        method = self._channel.unary_unary(
            f"/google.cloud.tasks.v2.CloudTasks/{name}",
            request_serializer=request.SerializeToString,
            response_deserializer=bytes,  # the response is not used
        )

        def call(message: Message, timeout: float) -> None:
            metadata = (("x-goog-request-params", f"parent={quote(message.parent, safe='')}"),)
            method(message, timeout=timeout, metadata=metadata)

        return call


def _make_template(
    url: str,
    invoker: str | None,
    audience: str | None,
    dispatch_deadline: timedelta,
) -> Message:
    task = CreateTaskRequest().task
    task.http_request.url = url
    task.http_request.http_method = POST
    task.http_request.headers["Content-Type"] = "application/json"
    task.dispatch_deadline.FromTimedelta(dispatch_deadline)
    if invoker is not None:
        task.http_request.oidc_token.service_account_email = invoker
        task.http_request.oidc_token.audience = audience or ""
    return task
