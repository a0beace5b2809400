"""Listen to Firestore for new offers: its Listen call streams the changes of a query's result.

The query is for the few offers that were written last, whatever their order in the queue: Firestore bills a
read for each document that comes into a query's result, so a backlog of any length costs a handful, and each
new offer one. Offers have a collection of their own, so other changes of tasks do not concern it. Firestore
itself stamps when an offer was written (``writtenAt``): the clocks of those who write do not matter. With so
many shards and queue keys that one query cannot have them all (more than 30 together), `notify` is called
every few seconds instead.

Sources: cloud.google.com/firestore/pricing (listening to query results), and Listen in google.firestore.v1.
"""

from __future__ import annotations

import random
import threading
import time
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import grpc  # type: ignore[import-untyped]  # grpcio ships no types

from cloudsched.adapters.firestore import protos as messages
from cloudsched.adapters.firestore.queries import build_arrival_listing
from cloudsched.adapters.firestore.rpc import FirestoreRpc
from cloudsched.adapters.firestore.shards import Shards
from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.concurrency.service_threads import ServiceThread
from cloudsched.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cloudsched.adapters.google.channel import Message

log: Final = own_logger(__name__)

WATCHED_OFFERS = 3
"""The number of offers in the query. One alone would hide another of the same instant behind it."""
STREAM_LIFETIME = timedelta(minutes=5)
"""The longest use of a stream. A connection that died silently is noticed then at the latest."""
INITIAL_BACKOFF = timedelta(seconds=0.5)
MAX_BACKOFF = timedelta(minutes=1)
"""The first and the longest pause before the stream is opened again."""

FALLBACK_POLL = timedelta(seconds=4)
"""The interval at which `notify` is called where listening is impossible."""

DEADLINE = timedelta(seconds=10)
"""The longest time of a call, or of the thread's end."""

_MAX_SEEN = 100
_ACTION = {"action": "listener"}
_TARGET = 1
_Change = messages.TargetChange.TargetChangeType
_PERMANENT_CODES = {
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.FAILED_PRECONDITION,  # no index
    grpc.StatusCode.NOT_FOUND,  # no database
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.UNIMPLEMENTED,
}
_CODES = {code.value[0]: code for code in grpc.StatusCode}


def reconnect_delay(failures: int) -> timedelta:
    """Return the longest pause after this many failures in a row."""
    return min(INITIAL_BACKOFF * (1 << min(failures - 1, 10)), MAX_BACKOFF)


class FirestoreListener:
    """A `Listener` to a Firestore database."""

    def __init__(
        self,
        *,
        project: str,
        database: str = "(default)",
        emulator: str | None = None,
        deadline: timedelta = DEADLINE,
        shards: int = 1,
        prefix: str = "",
    ) -> None:
        self._database = f"projects/{project}/databases/{database}"
        self._emulator = emulator
        self._deadline = deadline
        self._shards = shards
        self._prefix = prefix

    def listen(
        self, queue_keys: Sequence[str], owner: str | None, notify: Callable[[], None]
    ) -> AbstractContextManager[None]:
        """Call `notify` about offers in these queues, or of that owner alone, while the context lasts."""
        parent = f"{self._database}/documents"
        calls = ListenRpc(self._database, self._emulator, self._deadline, self._prefix)
        shards = Shards(calls, parent, self._shards)

        def make_request() -> Message | None:
            ranges = shards.find_for_offers(owner)
            first, *others = build_arrival_listing(queue_keys, owner, ranges).split()
            if others:
                return None
            request = messages.ListenRequest(database=self._database)
            request.add_target.target_id = _TARGET
            request.add_target.query.parent = parent
            request.add_target.query.structured_query.CopyFrom(first.to_query(WATCHED_OFFERS, parent))
            calls.prefix.add_to_query(request.add_target.query.structured_query)
            return request

        return _ListenThread(calls, make_request, notify, self._deadline)


class ListenRpc(FirestoreRpc):
    """Firestore's calls, and the streaming Listen."""

    def listen(self, request: Message, is_over: threading.Event) -> Message:
        """Return the stream of responses to a request. It stays open until `is_over` is set."""

        def requests() -> Iterator[Message]:
            yield request
            is_over.wait()  # the end of the requests would be the end of the stream

        method = self._channel.stream_stream(
            "/google.firestore.v1.Firestore/Listen",
            request_serializer=messages.ListenRequest.SerializeToString,
            response_deserializer=messages.ListenResponse.FromString,
        )
        return method(requests(), timeout=STREAM_LIFETIME.total_seconds(), metadata=self._metadata)


class _ListenThread(AbstractContextManager[None]):
    """A context, and the thread in it that reads one stream after the other.

    It is no generator: Python would finalize one that was never closed during its own shutdown, when gRPC can
    no longer close anything.
    """

    def __init__(
        self,
        calls: ListenRpc,
        make_request: Callable[[], Message | None],
        notify: Callable[[], None],
        join_timeout: timedelta,
    ) -> None:
        self._thread = ServiceThread("cloudsched-listener", self._run)
        self._rpc = calls
        self._make_request = make_request
        self._request = messages.ListenRequest()
        self._notify = notify
        self._join_timeout = join_timeout
        self._has_ended = threading.Event()
        self._stream: Message = None
        self._stream_lock = threading.Lock()
        self._is_current = False
        self._is_failing = False
        self._failures = 0
        self._seen: dict[str, int] = {}

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_error: object) -> None:
        with self._stream_lock:
            self._has_ended.set()
            if self._stream is not None:
                self._stream.cancel()
        self._thread.stop()
        self._thread.join(self._join_timeout.total_seconds())
        self._rpc.close()

    def _run(self) -> None:
        while not self._has_ended.is_set():
            self._is_current = False
            began_at = time.monotonic()
            try:
                request = self._make_request()
            except StoreUnavailable as error:
                code = grpc.StatusCode.UNAVAILABLE
                details = str(error)
            else:
                if request is None:
                    self._poll()
                    return
                self._renew(request)
                code, details = self._read_stream()

            if self._has_ended.is_set():
                return
            if not self._is_recoverable(code, details):
                self._poll()
                return

            if not self._is_current:  # Firestore may not know the token any more
                self._request.add_target.ClearField("resume_token")
            lasted = timedelta(seconds=time.monotonic() - began_at)
            if lasted > MAX_BACKOFF:
                self._failures = 1
            else:
                self._failures = self._failures + 1

            if self._failures > 1 and not self._is_current and not self._is_failing:  # streams end regularly
                self._is_failing = True
                log.warning(
                    "Firestore cannot be listened to at present: %s: %s",
                    code.name,
                    details,
                    extra=_ACTION,
                )

            pause = reconnect_delay(self._failures).total_seconds()
            self._has_ended.wait(pause * random.uniform(0.5, 1))  # noqa: S311 - spreads listeners, keeps no secret

    def _renew(self, request: Message) -> None:
        """Continue with this request. A resume token belongs to one query only."""
        request.add_target.resume_token = self._request.add_target.resume_token
        if request != self._request:
            request.add_target.ClearField("resume_token")
            self._request = request

    def _poll(self) -> None:
        while not self._has_ended.wait(FALLBACK_POLL.total_seconds() * random.uniform(0.75, 1.25)):  # noqa: S311 - the same
            self._notify()

    def _read_stream(self) -> tuple[grpc.StatusCode, str]:
        is_over = threading.Event()
        try:
            with self._stream_lock:
                if self._has_ended.is_set():
                    return grpc.StatusCode.CANCELLED, ""
                self._stream = self._rpc.listen(self._request, is_over)
            for answer in self._stream:
                if answer.HasField("target_change"):
                    change = answer.target_change
                    if change.target_change_type == _Change.REMOVE:
                        return _CODES.get(change.cause.code, grpc.StatusCode.UNKNOWN), change.cause.message
                    self._on_target(change)
                elif answer.document_change.target_ids:
                    self._on_document(answer.document_change.document)
        except grpc.RpcError as error:
            return error.code(), error.details() or ""
        finally:
            is_over.set()
            if self._stream is not None:
                self._stream.cancel()

        return grpc.StatusCode.OK, "the stream has ended"

    def _on_target(self, change: Message) -> None:
        if change.resume_token:
            self._request.add_target.resume_token = change.resume_token
        if change.target_change_type != _Change.CURRENT or self._is_current:
            return
        if self._is_failing:
            log.info("Firestore is listened to again", extra=_ACTION)
        self._is_current, self._is_failing = True, False  # the existing documents have been reported
        self._notify()

    def _on_document(self, document: Message) -> None:
        """Notify unless this version was seen before: the emulator repeats all documents after any write."""
        version = document.update_time.ToNanoseconds()
        if self._seen.get(document.name) == version:
            return
        self._seen.pop(document.name, None)
        self._seen[document.name] = version
        if len(self._seen) > _MAX_SEEN:
            del self._seen[next(iter(self._seen))]
        if self._is_current:
            self._notify()

    def _is_recoverable(self, code: grpc.StatusCode, details: str) -> bool:
        if code not in _PERMANENT_CODES or self._request.add_target.resume_token:
            return True
        hint = ""
        if code is grpc.StatusCode.FAILED_PRECONDITION:
            hint = " Deploy infra/firestore.indexes.json."
        log.error(
            "Firestore cannot be listened to, new work is found by polling every few seconds: %s: %s%s",
            code.name,
            details,
            hint,
            extra=_ACTION,
        )
        return False
