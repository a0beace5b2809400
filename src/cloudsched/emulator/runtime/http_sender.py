"""One attempt over HTTP: the request with Cloud Tasks' headers, and what came back.

Headers: https://cloud.google.com/tasks/docs/creating-http-target-tasks#handler and
https://cloud.google.com/tasks/docs/creating-appengine-handlers#reading-headers.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

import aiohttp
from yarl import URL

from cloudsched.emulator.api.uri_override import apply_override
from cloudsched.emulator.model.task import HORIZON, Answer, HttpTarget, OAuthToken, OidcToken
from cloudsched.emulator.runtime.history import Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.emulator.model.queue import Dispatch

MAX_RECORDED_BODY_BYTES: Final = 64 * 1024
"""How much of an answer's body is remembered."""
MAX_RESPONSE_BYTES: Final = 32 * 1024 * 1024
"""An answer that goes on beyond this is a failed attempt."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)


def build_request(
    dispatch: Dispatch, app_engine: str, authorize: Callable[[OidcToken | OAuthToken, str], str]
) -> Request:
    """The request that a dispatch makes.

    Args:
        dispatch: What is sent.
        app_engine: Where App Engine targets are found, such as `http://127.0.0.1:8080`; may be empty, and may have
            {service}, {version} and {instance} in it.
        authorize: Makes the Authorization header for a token and the target's URL; an empty one is left out.
    """
    target = dispatch.target
    if isinstance(target, HttpTarget):
        target = apply_override(target, dispatch.queue.config.http_target)
    headers = dict(target.headers)
    if isinstance(target, HttpTarget):
        prefix, url = "X-CloudTasks-", target.url
        if target.auth is not None and (value := authorize(target.auth, url)):
            headers["Authorization"] = value
    else:
        routing = dispatch.queue.config.app_engine_routing or target.routing
        host = app_engine.format(service=routing.service, version=routing.version, instance=routing.instance)
        prefix, url = "X-AppEngine-", f"{host}{target.relative_uri}" if host else ""
    headers[f"{prefix}QueueName"] = dispatch.queue.name.rpartition("/")[2]
    headers[f"{prefix}TaskName"] = dispatch.task.id
    headers[f"{prefix}TaskRetryCount"] = str(dispatch.retry_count)
    headers[f"{prefix}TaskExecutionCount"] = str(dispatch.execution_count)
    headers[f"{prefix}TaskETA"] = f"{(dispatch.schedule_at - _EPOCH) / _SECOND:.6f}"
    if dispatch.retry_count and dispatch.previous_status is not None:
        headers[f"{prefix}TaskPreviousResponse"] = str(dispatch.previous_status)
    if dispatch.retry_count:
        headers[f"{prefix}TaskRetryReason"] = ""
    return Request(target.method, url, headers, target.body)


class HttpSender:
    """Sends requests over connections that it keeps open. To be made and closed within one event loop."""

    def __init__(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=True),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=30),
            auto_decompress=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        )

    async def send(self, request: Request, now: Callable[[], datetime]) -> Answer:
        """Send a request and read its answer to the end; whatever goes wrong is an answer, too."""
        if not request.url:
            return Answer(failure="An App Engine target, but no address of an App Engine app is configured.")
        try:
            async with self._session.request(
                request.method,
                URL(request.url),
                headers=request.headers,
                data=request.body or None,
                allow_redirects=False,
            ) as response:
                kept, size = bytearray(), 0
                async for chunk in response.content.iter_any():
                    size += len(chunk)
                    if size > MAX_RESPONSE_BYTES:
                        return Answer(failure=f"The answer is over {MAX_RESPONSE_BYTES} bytes.")
                    if len(kept) < MAX_RECORDED_BODY_BYTES:
                        kept += chunk[: MAX_RECORDED_BODY_BYTES - len(kept)]
                return Answer(
                    status=response.status,
                    headers=dict(response.headers),
                    body=bytes(kept),
                    retry_after=parse_retry_after(response.headers.get("Retry-After", ""), now()),
                )
        except Exception as error:  # noqa: BLE001 - whatever a target brings about is its failed attempt, not ours
            return Answer(failure=f"{type(error).__name__}: {error}")

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()


def parse_retry_after(value: str, now: datetime) -> timedelta | None:
    """The wait that a `Retry-After` asks for (RFC 9110, 10.2.3): seconds or a date; never beyond the horizon."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        seconds = int(value[:12])
        return min(timedelta(seconds=seconds), HORIZON)
    if not value:
        return None
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    return min(max(at.replace(tzinfo=at.tzinfo or UTC) - now, timedelta(0)), HORIZON)
