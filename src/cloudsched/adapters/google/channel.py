"""Call Google's services: a channel to the service or to its emulator, deadlines, and retries.

The adapters use the protobuf messages of Google's client libraries and their channels with credentials, but not their
clients: those add a fifth to the time of a call on the local machine, and retry for a minute and more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import google.auth.exceptions
import grpc  # type: ignore[import-untyped]  # grpcio ships no types

from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from cloudsched.adapters.google.backoff import Backoff

T = TypeVar("T")

Message: TypeAlias = Any
"""A protobuf message or its class. The classes are created at import, so there is no static type."""

_OPTIONS = (
    ("grpc.max_receive_message_length", -1),  # a page of tasks may exceed gRPC's default of 4 MiB
    ("grpc.keepalive_time_ms", 30_000),
)

OVERLOAD_CODES = frozenset(
    {
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
    }
)
"""The codes of contention, overload and outages. The call may have taken effect or not."""


def open_channel(transport: Any, emulator: str | None) -> grpc.Channel:  # noqa: ANN401 - a class of Google's libraries
    """Return a channel; nothing is sent yet.

    Args:
        transport: The gRPC transport class of the service's client library, which knows host and scopes.
        emulator: ``host:port`` of a local emulator; None for the service itself, with the credentials that
            Google's libraries find (cloud.google.com/docs/authentication/application-default-credentials).

    Raises:
        Misconfigured: There are no credentials.
    """
    if emulator is not None:
        return grpc.insecure_channel(emulator, options=_OPTIONS)
    try:
        return transport.create_channel(options=_OPTIONS)
    except google.auth.exceptions.DefaultCredentialsError as error:
        hint = "run `gcloud auth application-default login`, or name an emulator"
        raise Misconfigured(f"Google Cloud needs credentials, and there are none: {hint}.") from error


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
