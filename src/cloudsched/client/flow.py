"""Operations as flows: written once, run by `Client` and by `AsyncClient`.

A flow is a generator that yields a request or a pause, and is sent the response. It does no I/O, so it is
the same for both clients, which differ only in how they run it. The error of a failed request is raised
inside the flow. If a proxy has answered instead of the API, that is Unavailable.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import math
import re
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MethodType
from typing import Any, Concatenate, Final, Generic, ParamSpec, Protocol, TypeVar, cast, overload
from urllib.parse import quote

from pydantic import ValidationError

from cloudsched.client.views import M, TaskView, reader
from cloudsched.domain.call_arguments import check_arguments
from cloudsched.domain.event_loops import warn_if_on_loop
from cloudsched.domain.handler_code import note_change
from cloudsched.domain.responses.api_responses import FieldError, Problem
from cloudsched.errors import (
    AmbiguousSchedule,
    AwaitedEvent,
    CloudschedError,
    DraftExpired,
    Forbidden,
    InvalidInput,
    InvalidPayload,
    InvalidSchedule,
    KeyReused,
    LeaseLost,
    LimitExceeded,
    Misconfigured,
    NotAllowed,
    NotAwaited,
    NotFound,
    PreconditionFailed,
    QuotaExceeded,
    Unauthenticated,
    Unavailable,
    UnknownHandler,
    VersionConflict,
)

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=Callable[..., Any])

ASKING_PATHS = frozenset({"/v1/schedules/preview", "/v1/tasks/draft"})
"""The paths of requests that change nothing, although their method is not GET."""
PAGE_SIZE = 100
"""The number of items of a list that are requested at a time."""


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request to the API."""

    method: str
    path: str
    """The path, encoded."""
    content: dict[str, Any] | None = None
    """The body, as JSON."""
    query: dict[str, Any] | None = None
    """The parameters. What is None is omitted."""
    headers: dict[str, str] = field(default_factory=dict)
    is_idempotent: bool = False
    """True if it may be repeated although its method is not idempotent."""
    time_limit: float | None = None
    """The most seconds that it may take. If this is given, it is sent only once."""
    wait: float = 0.0
    """The seconds that the API may wait before it answers, beside the time of the answer itself."""
    repeat_key: str | None = None
    """The key with which the caller repeats the call, if it is another one than this request's."""

    def __post_init__(self) -> None:
        # On the way, such parts are taken out of a path, encoded or not: it would be another operation's.
        if lost := {"", ".", ".."}.intersection(self.path.split("/")[1:]):
            named = " and ".join(repr(each) for each in sorted(lost))
            hint = "No task, run, person or event is called that."
            raise InvalidInput("id", f"is {named} in {self.path}", hint)


@dataclass(frozen=True, slots=True)
class Sleep:
    """A wait, in seconds."""

    seconds: float


Flow = Generator[ApiRequest | Sleep, "JsonResponse", T]
"""The steps of an operation, and the type of its result."""


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """A list that is read page by page."""

    path: str
    name: str
    """The field with the items."""
    query: dict[str, Any]
    parse: Callable[[Any], T]

    def fetch(self, token: str | None) -> Flow[tuple[list[T], str | None]]:
        """Return a page of items, and the token of the next one. None ends the list."""
        query = {"pageSize": PAGE_SIZE, **self.query, "pageToken": token}
        response = yield ApiRequest("GET", self.path, query=query)
        return response.read_list(self.name, self.parse), response.content.get("nextPageToken")


class FlowRunner(Protocol):
    """Runs flows, and blocks until they end."""

    def run_flow(self, flow: Flow[T]) -> T:
        """Return what a flow returns."""


class AsyncFlowRunner(Protocol):
    """Runs flows on an event loop."""

    async def run_flow_async(self, flow: Flow[T]) -> T:
        """Return what a flow returns."""


class operation(Generic[P, T]):  # noqa: N801 - used as a decorator
    """A method that is a flow: `Client` returns its result, `AsyncClient` an awaitable of it."""

    def __init__(self, flow: Callable[Concatenate[Any, P], Flow[T]]) -> None:
        self._flow = flow
        self._checked = check_arguments(flow)
        functools.update_wrapper(cast("Any", self), flow)

    @overload
    def __get__(self, client: None, kind: type) -> Callable[Concatenate[Any, P], T]: ...

    @overload
    def __get__(self, client: FlowRunner, kind: type | None = None) -> Callable[P, T]: ...

    @overload
    def __get__(
        self,
        client: AsyncFlowRunner,
        kind: type | None = None,
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, client: Any, kind: type | None = None) -> Any:
        """Return the method of a client, or the function of its class."""
        call = self._awaited if hasattr(client or kind, "run_flow_async") else self._blocking
        return call if client is None else MethodType(call, client)

    def _begin(self, client: object, arguments: tuple[Any, ...], named: dict[str, Any]) -> Flow[T]:
        flow = self._checked(client, *arguments, **named)
        cast("Any", flow).__name__ = self._flow.__name__  # it may be another function's
        return flow

    @functools.cached_property
    def _blocking(self) -> Callable[..., T]:
        def call(client: FlowRunner, /, *arguments: Any, **named: Any) -> T:
            flow, name = self._begin(client, arguments, named), self._flow.__name__
            face = getattr(client, "face", "client")
            warn_if_on_loop(f"{face}.{name}", f"{face}.{name}(…) of an Async{face.capitalize()}")
            return client.run_flow(flow)

        return _show_as(self._flow, call, "{}")

    @functools.cached_property
    def _awaited(self) -> Callable[..., Coroutine[Any, Any, T]]:
        async def call(client: AsyncFlowRunner, /, *arguments: Any, **named: Any) -> T:
            return await client.run_flow_async(self._begin(client, arguments, named))

        return _show_as(self._flow, call, "{}")


class listing(Generic[P, T]):  # noqa: N801 - used as a decorator
    """A method that lists items: `Client` returns an iterator over all pages, `AsyncClient` an async one."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Listing[T]]) -> None:
        self._describe = describe
        self._checked = check_arguments(describe)
        functools.update_wrapper(cast("Any", self), describe)

    @overload
    def __get__(self, client: None, kind: type) -> Callable[Concatenate[Any, P], Iterator[T]]: ...

    @overload
    def __get__(self, client: FlowRunner, kind: type | None = None) -> Callable[P, Iterator[T]]: ...

    @overload
    def __get__(self, client: AsyncFlowRunner, kind: type | None = None) -> Callable[P, AsyncIterator[T]]: ...

    def __get__(self, client: Any, kind: type | None = None) -> Any:
        """Return the method of a client, or the function of its class."""
        call = self._async if hasattr(client or kind, "run_flow_async") else self._blocking
        return call if client is None else MethodType(call, client)

    @functools.cached_property
    def _blocking(self) -> Callable[..., Iterator[T]]:
        def call(client: FlowRunner, /, *arguments: Any, **named: Any) -> Iterator[T]:
            return _iterate(client, self._checked(client, *arguments, **named))

        return _show_as(self._describe, call, "Iterator[{}]")

    @functools.cached_property
    def _async(self) -> Callable[..., AsyncIterator[T]]:
        def call(client: AsyncFlowRunner, /, *arguments: Any, **named: Any) -> AsyncIterator[T]:
            return _iterate_async(client, self._checked(client, *arguments, **named))

        return _show_as(self._describe, call, "AsyncIterator[{}]")


def _show_as(written: Callable[..., Any], call: C, result: str) -> C:
    """Give a method the name, the text and the signature with which its flow was written, and what callers get."""
    functools.update_wrapper(call, written)
    signature = inspect.signature(written)
    returned = result.format(str(signature.return_annotation).partition("[")[2].removesuffix("]"))
    shown = cast("Any", call)
    del shown.__wrapped__  # whose result is a flow
    shown.__signature__ = signature.replace(return_annotation=returned)
    shown.__annotations__ = {**written.__annotations__, "return": returned}
    return call


def _iterate(client: FlowRunner, wanted: Listing[T]) -> Iterator[T]:
    token: str | None = None
    while True:
        items, token = client.run_flow(wanted.fetch(token))
        yield from items
        if token is None:
            return


async def _iterate_async(client: AsyncFlowRunner, wanted: Listing[T]) -> AsyncIterator[T]:
    token: str | None = None
    while True:
        items, token = await client.run_flow_async(wanted.fetch(token))
        for item in items:
            yield item
        if token is None:
            return


_KINDS: dict[str, type[CloudschedError]] = {
    "ambiguous-schedule": AmbiguousSchedule,
    "invalid-schedule": InvalidSchedule,
    "invalid-payload": InvalidPayload,
    "unknown-handler": UnknownHandler,
    "key-reused": KeyReused,
    "draft-expired": DraftExpired,
    "not-allowed": NotAllowed,
    "not-awaited": NotAwaited,
    "lease-lost": LeaseLost,
    "limit-exceeded": LimitExceeded,
}
"""The errors that a problem's status alone does not identify."""
_STATUSES: dict[int, type[CloudschedError]] = {
    400: InvalidInput,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: VersionConflict,
    412: PreconditionFailed,
    413: InvalidInput,
    415: InvalidInput,
    422: InvalidInput,
    429: QuotaExceeded,
    501: Misconfigured,
}

_SECONDS = re.compile("[0-9]{1,9}")
_PASSING_STATUSES = frozenset({502, 503, 504})
"""The statuses of a service that is overloaded or not reached. An exceeded quota (429) is left to the caller."""
_LASTING = frozenset({"misconfigured", "clock-skewed"})
"""The problems of a service that will not answer until somebody has mended it."""


def error_from_problem(problem: Problem, retry_after: str = "", server: str = "The API") -> CloudschedError:
    """Return the error for a problem document, with the API's message and the attributes of its class."""
    detail = problem.detail or problem.title or str(problem.status)
    name = problem.type.rpartition("/")[2]
    kind = _KINDS.get(name) or _STATUSES.get(problem.status)
    seconds = _read_seconds(retry_after)
    if kind is None:
        unavailable = Unavailable(server, f"{problem.status}: {detail}")
        unavailable.is_retryable = problem.status in _PASSING_STATUSES and name not in _LASTING
        unavailable.retry_after = None if seconds is None else timedelta(seconds=seconds)
        return unavailable
    error = kind.__new__(kind, detail)
    known = {
        "field": problem.field or "(request)",
        "problem": detail,
        "hint": problem.hint or "",
        "words": problem.words or "",
        "readings": tuple(problem.readings or ()),
        "awaited": tuple(AwaitedEvent(**dict(each)) for each in problem.awaited or ()),
        "event": "",
        "status": "",
        "action": "",
        "kind": "",
        "key": "",
        "quota": "",
        "limit": 0,
        "retry_after": seconds,
    }
    for name in _ATTRIBUTES.get(next(each for each in kind.__mro__ if each in _ATTRIBUTES), ()):
        setattr(error, name, known[name])
    if isinstance(error, InvalidInput):
        error.readings = tuple(problem.readings or ())
        if problem.errors:
            first, *others = map(_read_fault, problem.errors)
            error.args = first.args
            error.path = first.path
            error.others = tuple(others)
            error.problem = first.problem
    return error


def _read_seconds(retry_after: str) -> int | None:
    """Return the seconds that a ``Retry-After`` asks to wait, which may name a time. None if there is none."""
    if not retry_after or _SECONDS.fullmatch(retry_after):
        return int(retry_after) if retry_after else None

    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - hardly any server sends a time

    try:
        seconds = parsedate_to_datetime(retry_after).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
    return max(0, math.ceil(seconds))


def _read_fault(fault: FieldError) -> InvalidInput:
    parts = [part.replace("~1", "/").replace("~0", "~") for part in (fault.pointer or "").split("/")[1:]]
    parts = parts or [each for each in (fault.parameter, fault.header) if each is not None]
    read = InvalidInput(".".join(parts) or "(body)", fault.detail, fault.hint or "")
    read.words = fault.words or ""
    read.path = tuple(parts)
    return read


_ATTRIBUTES: dict[type, tuple[str, ...]] = {
    AmbiguousSchedule: ("field", "problem", "hint", "words", "readings"),
    InvalidSchedule: ("field", "problem", "hint", "words"),
    InvalidInput: ("field", "problem", "hint"),
    NotFound: ("kind", "key"),
    NotAwaited: ("action", "status", "hint", "event", "awaited"),
    NotAllowed: ("action", "status", "hint"),
    LeaseLost: ("key",),
    VersionConflict: ("key",),
    QuotaExceeded: ("quota", "limit", "hint", "retry_after"),
    CloudschedError: (),
}
"""The attributes of each class of errors besides its message. Each is empty where the API does not send it."""

MAX_RESPONSE_BYTES = 32 * 1024 * 1024
"""The largest response that is read, in bytes. A page of tasks is smaller."""
_OK = 200
_NO_CONTENT = 204
_REDIRECT = 300
_GATEWAY_STATUSES = frozenset({400, 401, 403, 413, 429})
"""Statuses that are trusted from a gateway in front of the API. All others must come from the API itself."""


@dataclass(frozen=True, slots=True)
class JsonResponse:
    """A response of the API."""

    server: str
    """The API's name and address, for error messages."""
    content: dict[str, Any]
    etag: str

    def read(self, what: str, read: Callable[[dict[str, Any]], T]) -> T:
        """Return the content, parsed by `read`. Raises Unavailable if the content is not a `what`, as requested."""
        try:
            return read(self.content)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, Unavailable) as error:
            raise not_the_api(self.server, f"it is not {what}") from error

    def read_list(self, name: str, read: Callable[[Any], T]) -> list[T]:
        """Return a list's items, parsed by `read`. Raises Unavailable without a list, or for an invalid item."""

        def every(content: dict[str, Any]) -> list[T]:
            if not isinstance(content[name], list):
                raise TypeError(name)
            return [read(each) for each in content[name]]

        return self.read(f"a list of {name}", every)


def fetch(
    what: str,
    model: type[M],
    method: str,
    path: str,
    content: dict[str, Any] | None = None,
    query: dict[str, Any] | None = None,
) -> Flow[M]:
    """Send a request that is safe to repeat, and return the answer, which is a `what`."""
    return (yield ApiRequest(method, path, content, query, is_idempotent=True)).read(what, reader(model))


_NOT_IN_KEYS: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SAFE_IN_KEYS: Final = "".join(each for each in map(chr, range(0x21, 0x7F)) if each != "%")
KEY_HEADER: Final = "Idempotency-Key"


def encode_header(name: str, value: str) -> str:
    """Return a header's value as it is sent: a key may be any text. Raises InvalidInput."""
    if name == KEY_HEADER:
        if _NOT_IN_KEYS.search(value):
            problem = "has a control character, or half a character (a lone surrogate)"
            raise InvalidInput("idempotency_key", problem, "Give visible text, in any script.")
        return quote(value, safe=_SAFE_IN_KEYS)
    if not (value.isascii() and value.isprintable()):
        field = "etag" if name.startswith("If-") else name
        raise InvalidInput(field, "has characters that a header cannot have", "Give it as the API wrote it.")
    return value


def choose_key(key: str | None) -> str:
    """Return the idempotency key of a request: the caller's, or a new one."""
    return str(uuid.uuid4()) if key is None else key


def hash_key(key: str) -> str:
    """Return a text that stands for a key, however long that is."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def given(**fields: T | None) -> dict[str, T]:
    """Return the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def not_the_api(server: str, why: str, status: int = 0, retry_after: str = "") -> Unavailable:
    """Return the error for a response that is not the API's. The message does not quote the response."""
    error = Unavailable(server, f"the response is not the API's: {why}")
    error.is_retryable = status in _PASSING_STATUSES
    seconds = _read_seconds(retry_after)
    error.retry_after = None if seconds is None else timedelta(seconds=seconds)
    return error


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A complete HTTP response, of the API or of a proxy in front of it."""

    status: int
    reason: str
    headers: Mapping[str, str]
    """The headers by their names, in any case."""
    body: bytes


class BodyCollector:
    """Collects a response's body, up to `MAX_RESPONSE_BYTES`."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._body = bytearray()

    def add(self, piece: bytes) -> None:
        """Add a chunk. Raises Unavailable if the body exceeds the limit."""
        self._body += piece
        if len(self._body) > MAX_RESPONSE_BYTES:
            raise not_the_api(self._server, f"it is longer than {MAX_RESPONSE_BYTES} bytes")

    def to_bytes(self) -> bytes:
        """Return the body."""
        return bytes(self._body)


def parse_response(response: HttpResponse, server: str) -> JsonResponse:
    """Return the API's response. Raises Unavailable or CloudschedError."""
    content = _parse_content(response.body)
    if not _OK <= response.status < _REDIRECT:
        raise _to_error(response, content, server)
    if response.status == _NO_CONTENT:
        content = {}
    if content is None:
        raise not_the_api(server, "it is not a JSON object")
    return JsonResponse(server, content, response.headers.get("ETag", ""))


def _parse_content(body: bytes) -> dict[str, Any] | None:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _to_error(response: HttpResponse, content: dict[str, Any] | None, server: str) -> CloudschedError:
    status = response.status
    retry_after = response.headers.get("Retry-After", "")
    status_line = f"{status} {response.reason}"
    defaults: dict[str, Any] = {"title": response.reason, "status": status, "detail": status_line}
    try:
        problem = reader(Problem)(defaults | (content or {}))  # all of a problem but its type may be omitted
    except ValidationError:
        if status not in _GATEWAY_STATUSES:
            return not_the_api(server, status_line, status, retry_after)
        problem = Problem(type="about:blank", **defaults)
    return error_from_problem(problem, retry_after, server)


def parse_task(response: JsonResponse) -> TaskView:
    """Return the task in a response, with its ETag."""
    return response.read("a task", lambda content: TaskView.from_response(content, response.etag))


class FlowStep(Generic[T]):
    """A running flow: its next request or pause, given the result or the error of the last request."""

    def __init__(self, flow: Flow[T], face: str) -> None:
        self._flow = flow
        self._face = face
        self.response: JsonResponse | None = None
        self.error: CloudschedError | None = None
        self.result: T

    def next(self) -> ApiRequest | Sleep | None:
        """Return the flow's next request or pause. None once it has ended, and `result` is set."""
        response = self.response
        error = self.error
        self.response = self.error = None
        try:
            # None starts the flow, and ends a pause.
            wanted = self._flow.send(response) if error is None else self._flow.throw(error)  # type: ignore[arg-type]
        except StopIteration as end:
            self.result = end.value
            return None
        if isinstance(wanted, ApiRequest) and wanted.method != "GET" and wanted.path not in ASKING_PATHS:
            note_change(f"{self._face}.{getattr(self._flow, '__name__', '…')}")
        return wanted


def run_steps(step: FlowStep[T], send: Callable[[ApiRequest], JsonResponse]) -> T:
    """Run a flow to its end with what sends its requests, and return its result. It blocks."""
    while (wanted := step.next()) is not None:
        if isinstance(wanted, Sleep):
            time.sleep(wanted.seconds)
            continue
        try:
            step.response = send(wanted)
        except CloudschedError as error:
            step.error = error
    return step.result
