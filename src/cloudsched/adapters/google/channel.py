"""Call Google's services: a channel to the service or to its emulator, deadlines, and retries.

The adapters do not use Google's clients: those add a fifth to the time of a call on the local machine, retry
for a minute and more, and take half a second to import. See `protobuf` for what is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import grpc  # type: ignore[import-untyped]  # grpcio ships no types

from cloudsched.adapters.google.credentials import require_credentials

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from cloudsched.adapters.google.backoff import Backoff

T = TypeVar("T")

Message: TypeAlias = Any
"""A protobuf message or its class. The classes are created at import, so there is no static type."""

OPTIONS = (
    ("grpc.max_receive_message_length", -1),  # a page of tasks may exceed gRPC's default of 4 MiB
    ("grpc.keepalive_time_ms", 30_000),
    # A call that is answered by a stream, as every read is, is served by its caller's thread: gRPC starts one
    # for each otherwise (`grpc.experimental.ChannelOptions`).
    ("SingleThreadedUnaryStream", 1),
)
"""The options with which all channels are opened."""

OVERLOAD_CODES = frozenset(
    {
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
    }
)
"""The codes of contention, overload and outages. The call may have taken effect or not."""


class GoogleService(NamedTuple):
    """One of Google's services."""

    host: str
    scopes: tuple[str, ...]
    """The scopes of its tokens."""


def open_channel(service: GoogleService, emulator: str | None) -> grpc.Channel:
    """Return a channel. Nothing is sent yet. Raises Misconfigured if there are no credentials."""
    if emulator is not None:
        return grpc.insecure_channel(emulator, options=OPTIONS)
    credentials = make_channel_credentials(service.host, service.scopes)
    return grpc.secure_channel(service.host, credentials, options=OPTIONS)


def retry(call: Callable[[float], T], retryable: Collection[grpc.StatusCode], backoff: Backoff) -> T:
    """Make a call, and retry it after certain codes, with backoff and jitter, until the deadline."""
    return backoff.retry(call, lambda error: isinstance(error, grpc.RpcError) and error.code() in retryable)


def make_channel_credentials(host: str, scopes: Sequence[str]) -> grpc.ChannelCredentials:
    """Return what authenticates the calls on a channel, as Google's libraries find it. Nothing is sent yet.

    These libraries take longer to import than everything else that a channel needs. The credentials have the
    same parts as in Google's clients: the scopes of the service, self-signed tokens for a service account's
    key, the project that pays, and the channel credentials that work on Google's machines as well as
    elsewhere.
    """
    import google.auth  # noqa: PLC0415 - only for a channel to the service itself
    from google.auth.transport.grpc import AuthMetadataPlugin  # noqa: PLC0415 - the same
    from google.auth.transport.requests import Request  # noqa: PLC0415 - the same

    with require_credentials("Google Cloud", ", or name an emulator"):
        credentials, _ = google.auth.default(default_scopes=scopes)
    plugin = AuthMetadataPlugin(credentials, Request(), default_host=host)  # type: ignore[no-untyped-call]
    return grpc.compute_engine_channel_credentials(grpc.metadata_call_credentials(plugin))
