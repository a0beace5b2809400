"""Who may use the tools over HTTP: whoever sends the server's bearer key.

It is compared in constant time; a wrong or missing one gets 401. It is not passed on: the API is called with the
server's own key.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any, Final

from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Message = MutableMapping[str, Any]
    AsgiApp = Callable[
        [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
    ]

MIN_KEY_LENGTH: Final = 16


def require_bearer(app: AsgiApp, key: str) -> AsgiApp:
    """Return an app that answers 401 to requests without the key.

    Raises:
        Misconfigured: The key is short enough to be guessed.
    """
    if len(key) < MIN_KEY_LENGTH:
        raise Misconfigured(f"A bearer key has at least {MIN_KEY_LENGTH} characters.")
    wanted = f"Bearer {key}".encode()

    async def guarded(scope: Message, receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI has it
        given = dict(scope.get("headers", ())).get(b"authorization", b"")
        if scope["type"] == "http" and not hmac.compare_digest(given, wanted):
            headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": b"Send Authorization: Bearer and this server's key."})
            return
        await app(scope, receive, send)

    return guarded
