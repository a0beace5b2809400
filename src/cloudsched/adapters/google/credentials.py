"""The credentials of a channel to one of Google's services, as Google's libraries find them.

Only a channel to the service itself imports this module: the libraries take longer than everything else that a channel
needs. A channel gets its credentials from the same parts as in Google's clients: the scopes of the service, self-signed
tokens for a service account's key, the project that pays, and the channel credentials that work on Google's machines as
well as elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import google.auth
import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from google.auth.exceptions import DefaultCredentialsError
from google.auth.transport.grpc import AuthMetadataPlugin
from google.auth.transport.requests import Request

from cloudsched.errors import Misconfigured


def make_channel_credentials(host: str, scopes: Sequence[str]) -> grpc.ChannelCredentials:
    """Return what authenticates the calls on a channel. Nothing is sent yet."""
    try:
        credentials, _ = google.auth.default(default_scopes=scopes)
    except DefaultCredentialsError as error:
        hint = "run `gcloud auth application-default login`, or name an emulator"
        raise Misconfigured(f"Google Cloud needs credentials, and there are none: {hint}.") from error
    plugin = AuthMetadataPlugin(credentials, Request(), default_host=host)  # type: ignore[no-untyped-call]
    return grpc.compute_engine_channel_credentials(grpc.metadata_call_credentials(plugin))
