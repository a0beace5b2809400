"""What came back of a request: read once, as far as it is the API's. Anybody on the way may have answered instead."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from cloudsched.client.problems import error_of_problem
from cloudsched.errors import CloudschedError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    import requests

T = TypeVar("T")

LONGEST = 32 * 1024 * 1024
"""How many bytes of an answer are read; a page of tasks is smaller than that."""
_PIECE = 64 * 1024
_NO_CONTENT = 204
_SAID_BY_OTHERS = frozenset({400, 401, 403, 413, 429})
"""What a gateway before the API may say in its place; all else is only heeded from the API itself."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API has answered."""

    place: str
    """Who has, for people."""
    content: dict[str, Any]
    etag: str

    def read(self, what: str, read: Callable[[dict[str, Any]], T]) -> T:
        """Return what `read` makes of the answer. Raises Unavailable if that is not `what` was asked for."""
        try:
            return read(self.content)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, Unavailable) as error:
            raise foreign(self.place, f"it is not {what}") from error

    def listed(self, name: str, read: Callable[[Any], T]) -> list[T]:
        """Return what `read` makes of each of a list. Raises Unavailable if there is none, or one is unreadable."""

        def every(content: dict[str, Any]) -> list[T]:
            if not isinstance(content[name], list):
                raise TypeError(name)
            return [read(each) for each in content[name]]

        return self.read(f"a list of {name}", every)


def foreign(place: str, why: str) -> Unavailable:
    """Return the error for an answer that is not the API's; its words repeat nothing of the answer."""
    return Unavailable(place, f"what answered is not the API: {why}")


def answer_of(response: requests.Response, place: str) -> Answer:
    """Read an answer to its end, and return it.

    Raises:
        Unavailable: Somebody else than the API has answered.
        CloudschedError: The API refused what was asked for.
        requests.RequestException: The answer broke off.
    """
    with response:
        body = _body(response, place)
    content = _content(body)
    if not response.ok or response.is_redirect:
        raise _error(response, content, place)
    if response.status_code == _NO_CONTENT:
        content = {}
    if content is None:
        raise foreign(place, "it is no JSON object")
    return Answer(place, content, response.headers.get("ETag", ""))


def _body(response: requests.Response, place: str) -> bytes:
    body = bytearray()
    for piece in response.iter_content(_PIECE):
        body += piece
        if len(body) > LONGEST:
            raise foreign(place, f"it is longer than {LONGEST} bytes")
    return bytes(body)


def _content(body: bytes) -> dict[str, Any] | None:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _error(response: requests.Response, problem: dict[str, Any] | None, place: str) -> CloudschedError:
    status = response.status_code
    said = f"{status} {response.reason}"
    if problem is None or not isinstance(problem.get("type"), str):
        if status not in _SAID_BY_OTHERS:
            return foreign(place, said)
        problem = {"detail": said}
    return error_of_problem(problem, status, response.headers.get("Retry-After", ""), place)
