"""Call Google's services: a channel to the service or to its emulator, deadlines, and retries.

The adapters do not use Google's clients: those add a fifth to the time of a call on the local machine, retry for a
minute and more, and take half a second to import. See `messages` for what is sent, and `credentials` for who sends it.

Google asks for pauses that grow and are jittered after contention and overload
(cloud.google.com/firestore/docs/understand-error-codes, cloud.google.com/storage/docs/retry-strategy): trying again at
once would add to the load that caused the error.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import grpc  # type: ignore[import-untyped]  # grpcio ships no types

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from tenacity import RetryCallState


T = TypeVar("T")

Message: TypeAlias = Any
"""A protobuf message or its class. The classes are created at import, so there is no static type."""

OPTIONS = (
    ("grpc.max_receive_message_length", -1),  # a page of tasks may exceed gRPC's default of 4 MiB
    ("grpc.keepalive_time_ms", 30_000),
    # A call that is answered by a stream, as every read is, is served by its caller's thread: gRPC starts one for each
    # otherwise (`grpc.experimental.ChannelOptions`).
    ("SingleThreadedUnaryStream", 1),
)
"""How all channels are opened."""

OVERLOAD_CODES = frozenset(
    {
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
    }
)
"""The codes of contention, overload and outages. The call may have taken effect or not."""


class Service(NamedTuple):
    """One of Google's services."""

    host: str
    scopes: tuple[str, ...]
    """What its tokens must be for."""


def open_channel(service: Service, emulator: str | None) -> grpc.Channel:
    """Return a channel; nothing is sent yet.

    Args:
        service: The service.
        emulator: ``host:port`` of a local emulator; None for the service itself, with the credentials that
            Google's libraries find (cloud.google.com/docs/authentication/application-default-credentials).

    Raises:
        Misconfigured: There are no credentials.
    """
    if emulator is not None:
        return grpc.insecure_channel(emulator, options=OPTIONS)
    from cloudsched.adapters.google.credentials import make_channel_credentials  # noqa: PLC0415 - see there

    credentials = make_channel_credentials(service.host, service.scopes)
    return grpc.secure_channel(service.host, credentials, options=OPTIONS)


def retry(call: Callable[[float], T], retryable: Collection[grpc.StatusCode], backoff: Backoff) -> T:
    """Make a call, and retry it after certain codes, with exponential backoff and jitter, until the deadline.

    Args:
        call: The call, given the seconds that are left.
        retryable: The codes after which it is retried.
        backoff: The pauses between the tries, and the deadline of all together.

    Raises:
        grpc.RpcError: The error of the last try.
    """
    return backoff.retry(call, lambda error: isinstance(error, grpc.RpcError) and error.code() in retryable)


_INITIAL_PAUSE = 0.1
_MAX_PAUSE = 4.0
"""The first and the longest pause between two tries, in seconds; each is twice the one before."""
_SHORTEST_TRY = 0.05
"""A try that has less of the whole deadline left is not made: it would time out, and hide why the others failed."""


class Backoff:
    """The tries of one call, or of several calls that share a deadline.

    Args:
        deadline: How many seconds all tries and pauses may take together.
    """

    def __init__(self, deadline: float) -> None:
        self._give_up_at = time.monotonic() + deadline
        self._shortest_try = _SHORTEST_TRY * deadline

    @property
    def seconds_left(self) -> float:
        """Return how long the next try may take."""
        return max(0.0, self._give_up_at - time.monotonic())

    def retry(self, call: Callable[[float], T], is_retryable: Callable[[BaseException], bool]) -> T:
        """Make a call, given the seconds that are left, and retry it after some errors until the deadline.

        Raises:
            BaseException: The error of the last try.
        """
        try:
            return call(self.seconds_left)
        except Exception as error:
            if not is_retryable(error):
                raise
            return self._retry_after(error, call, is_retryable)

    def _retry_after(
        self, error: Exception, call: Callable[[float], T], is_retryable: Callable[[BaseException], bool]
    ) -> T:
        """Continue after a first try that failed with this error."""
        # Few processes ever retry, and importing tenacity would be a tenth of a cold start.
        from tenacity import Retrying, retry_if_exception, wait_exponential, wait_random  # noqa: PLC0415

        first: Exception | None = error

        def repeat() -> T:
            nonlocal first
            if first is not None:
                failed, first = first, None
                raise failed
            return call(self.seconds_left)

        half = wait_exponential(multiplier=_INITIAL_PAUSE / 2, max=_MAX_PAUSE / 2)
        tries = Retrying(
            stop=self._is_too_late,
            wait=lambda state: half(state) * (1 + wait_random(0, 1)(state)),
            retry=retry_if_exception(is_retryable),
            sleep=time.sleep,
            reraise=True,
        )
        return tries(repeat)

    def _is_too_late(self, state: RetryCallState) -> bool:
        """Return whether the next try would have no time before the deadline."""
        return state.upcoming_sleep + self._shortest_try >= self.seconds_left
