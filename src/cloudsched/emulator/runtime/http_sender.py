"""One attempt over HTTP: the request with Cloud Tasks' headers, and its result.

Headers: https://cloud.google.com/tasks/docs/creating-http-target-tasks#handler.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

import aiohttp
from yarl import URL

from cloudsched.emulator.model.task import HORIZON, HttpResult, OAuthToken, OidcToken
from cloudsched.emulator.runtime.attempt_history import Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.emulator.model.queue import DispatchAttempt

MAX_RECORDED_BODY_BYTES: Final = 64 * 1024
"""The bytes of a response's body that are kept."""
MAX_RESPONSE_BYTES: Final = 32 * 1024 * 1024
"""A longer response is a failed attempt."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)


class HttpSender:
    """Builds and sends requests, over persistent connections. Create and close it within one event loop.

    An empty Authorization header is omitted. The time by which a response's `Retry-After` is read is `now`.
    """

    def __init__(
        self,
        authorize: Callable[[OidcToken | OAuthToken, str], str],
        now: Callable[[], datetime],
    ) -> None:
        self._authorize = authorize
        self._now = now
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=True),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=30),
            auto_decompress=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        )

    def build_request(self, dispatch: DispatchAttempt) -> Request:
        """Build the HTTP request of a dispatch."""
        target = dispatch.target
        headers = dict(target.headers)
        if target.auth is not None and (value := self._authorize(target.auth, target.url)):
            headers["Authorization"] = value
        headers["X-CloudTasks-QueueName"] = dispatch.queue.name.rpartition("/")[2]
        headers["X-CloudTasks-TaskName"] = dispatch.task.id
        headers["X-CloudTasks-TaskRetryCount"] = str(dispatch.retry_count)
        headers["X-CloudTasks-TaskExecutionCount"] = str(dispatch.execution_count)
        headers["X-CloudTasks-TaskETA"] = f"{(dispatch.schedule_at - _EPOCH) / _SECOND:.6f}"
        if dispatch.retry_count:  # as recorded from the service
            if dispatch.previous_status is not None:
                headers["X-CloudTasks-TaskPreviousResponse"] = str(dispatch.previous_status)
            headers["X-CloudTasks-TaskRetryReason"] = ""
        return Request(target.method, target.url, headers, target.body)

    async def send(self, request: Request) -> HttpResult:
        """Send a request and read the whole response. Any error is a result, too."""
        try:
            async with self._session.request(
                request.method,
                URL(request.url),
                headers=request.headers,
                data=request.body or None,
                allow_redirects=False,
            ) as response:
                body = bytearray()
                size = 0
                async for chunk in response.content.iter_any():
                    size += len(chunk)
                    if size > MAX_RESPONSE_BYTES:
                        return HttpResult(failure=f"The response is larger than {MAX_RESPONSE_BYTES} bytes.")
                    if len(body) < MAX_RECORDED_BODY_BYTES:
                        body += chunk[: MAX_RECORDED_BODY_BYTES - len(body)]

                return HttpResult(
                    status=response.status,
                    headers=dict(response.headers),
                    body=bytes(body),
                    retry_after=parse_retry_after(response.headers.get("Retry-After", ""), self._now()),
                )
        except Exception as error:  # noqa: BLE001 - any error at the target is a failed attempt
            return HttpResult(failure=f"{type(error).__name__}: {error}")

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()


def parse_retry_after(value: str, now: datetime) -> timedelta | None:
    """Return the wait of a `Retry-After` header (RFC 9110, 10.2.3), at most the horizon."""
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
