"""What both chats share: one post of JSON to the service, and a tap on a button of a question."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from cloudsched.domain.documents.json_limits import truncate
from cloudsched.people.senders.mail import clean_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from werkzeug.datastructures import Headers

    from cloudsched.adapters.safe_http.user_posts import MakeSession
    from cloudsched.engine.ports.sender import OutgoingMessage, Recipient

_MAX_ANSWER: Final = 60_000
"""The number of bytes of an answer that are read."""
_REFUSALS: Final = (400, 401, 403, 404)
"""The statuses whose body says what is wrong."""
MAX_TEXT: Final = 2_900
"""The most bytes of a message: Slack takes 3,000 characters in a block, Telegram 4,096 in a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tap:
    """A press of a button below a question."""

    user: str
    """The account that pressed it, as the service has proved."""
    delivery_id: str
    """The delivery that brought the question."""
    approved: bool
    place: tuple[str, str]
    """The chat and the message that has the buttons."""
    query: str = ""
    """The name of the press, if the service waits for an answer to it."""


class ChatApp(Protocol):
    """An app of a chat service: it sends messages, and understands what the service posts."""

    def send(self, message: OutgoingMessage, recipient: Recipient) -> str:
        """Send a message, as `Sender` has it."""
        ...

    def read(self, headers: Headers, body: bytes, now: datetime) -> Tap | dict[str, Any]:
        """Return the tap that the service tells of, or what it is answered.

        Raises Unauthenticated unless the service has posted it, and InvalidInput if it is not JSON.
        """
        ...

    def show(self, tap: Tap, text: str) -> None:
        """Put a text in the place of a question and its buttons. Raises DeliveryDelayed."""
        ...

    def answer(self, tap: Tap, text: str) -> dict[str, Any]:
        """Return what the service is answered, so that whoever pressed the button reads a text."""
        ...


class ChatPosts:
    """Posts JSON to a service. No error shows an address, which may have a token."""

    def __init__(self, service: str, make_session: MakeSession, headers: Mapping[str, str]) -> None:
        from cloudsched.adapters.safe_http.user_posts import UserPosts  # noqa: PLC0415 - only when used

        self._posts = UserPosts(service, "", make_session)
        self._headers = headers

    def post(self, url: str, content: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Post once. Return the status and the answer. Raises DeliveryDelayed."""
        headers = {"Content-Type": "application/json; charset=utf-8", **self._headers}
        body = json.dumps(content).encode()
        status, answer = self._posts.post(url, body, headers, reads=_MAX_ANSWER, refusals=_REFUSALS)
        try:
            found: Any = json.loads(answer)
        except ValueError:
            found = {}
        return status, found if isinstance(found, dict) else {}


def write_text(message: OutgoingMessage) -> str:
    """Return a message as plain text: its title and its body, without marks of direction."""
    lines = [clean_line(message.title), ""]
    if message.body != message.title:
        lines += map(clean_line, message.body.split("\n"))
    return truncate("\n".join(lines).strip(), MAX_TEXT) or "…"


def read_path(content: object, *names: str | int) -> Any:  # noqa: ANN401 - any JSON
    """Return a part of JSON from outside, or None if it is not there."""
    for name in names:
        is_there = isinstance(content, dict) and name in content
        is_there = is_there or (isinstance(content, list) and isinstance(name, int) and name < len(content))
        if not is_there:
            return None
        content = content[name]  # type: ignore[index]  # it is there
    return content
