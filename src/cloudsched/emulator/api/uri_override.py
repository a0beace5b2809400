"""Apply a queue's HTTP target override to the requests of its tasks.

Source: the comments of `HttpTarget` and `UriOverride` in `google/cloud/tasks/v2/target.proto`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from cloudsched.emulator.model.task import BODY_METHODS, METHODS, HttpTarget, OAuthToken, OidcToken

if TYPE_CHECKING:
    from cloudsched.emulator.api.messages import Proto

_SCHEMES = ("https", "http", "https")
_IF_NOT_EXISTS = 1


def supplies_url(override: Proto | None) -> bool:
    """Return whether tasks of a queue with this override need no URL of their own."""
    return override is not None and bool(override.uri_override.host)


def apply_override(target: HttpTarget, override: Proto | None) -> HttpTarget:
    """Return the target with the queue's override, an `HttpTarget` message, applied."""
    if override is None:
        return target
    headers = dict(target.headers)
    for item in override.header_overrides:
        for name in [name for name in headers if name.lower() == item.header.key.lower()]:
            del headers[name]
        headers[item.header.key] = item.header.value
    method = METHODS[override.http_method - 1] if override.http_method else target.method
    auth = target.auth
    if override.HasField("oidc_token"):
        auth = OidcToken(override.oidc_token.service_account_email, override.oidc_token.audience)
    elif override.HasField("oauth_token"):
        auth = OAuthToken(override.oauth_token.service_account_email, override.oauth_token.scope)
    return replace(
        target,
        url=_override_url(target.url, override.uri_override),
        method=method,
        headers=headers,
        body=target.body if method in BODY_METHODS else b"",
        auth=auth,
    )


def _override_url(url: str, override: Proto) -> str:
    if url and override.uri_override_enforce_mode == _IF_NOT_EXISTS:
        return url
    parts = urlsplit(url or "https:///")
    scheme = _SCHEMES[override.scheme] if override.HasField("scheme") else parts.scheme
    host = override.host if override.HasField("host") else parts.netloc.rpartition(":")[0] or parts.netloc
    port = f":{parts.port}" if parts.port else ""
    if override.HasField("port"):
        port = f":{override.port}" if override.port else ""
    path = override.path_override.path if override.HasField("path_override") else parts.path
    query = override.query_override.query_params if override.HasField("query_override") else parts.query
    return str(urlunsplit((scheme, f"{host}{port}", path, query, "")))
