"""This program's credentials for Google Cloud. They are looked for only where a service itself is called.

Google's libraries for them take longer to import than everything else that a call needs.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def require_credentials(service: str, hint: str = "") -> Iterator[None]:
    """Raise Misconfigured, with what to do, if the ``with`` block finds no credentials for a service."""
    from google.auth.exceptions import DefaultCredentialsError  # noqa: PLC0415 - see the module's docstring

    try:
        yield
    except DefaultCredentialsError as error:
        what_to_do = f"run `gcloud auth application-default login`{hint}"
        raise Misconfigured(f"{service} needs credentials, and there are none: {what_to_do}.") from error


def open_session(service: str, scope: str) -> Any:  # noqa: ANN401 - google-auth ships no types for it
    """Return an HTTP session with the program's credentials. Raises Misconfigured if there are none."""
    import google.auth  # noqa: PLC0415 - see the module's docstring
    from google.auth.transport.requests import AuthorizedSession  # noqa: PLC0415 - the same

    with require_credentials(service):
        credentials, _ = google.auth.default(scopes=[scope])
    return AuthorizedSession(credentials)  # type: ignore[no-untyped-call]
