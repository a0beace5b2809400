"""Send pushes by the HTTP v1 API of Firebase Cloud Messaging (FCM), to Android, iOS and browsers.

The meanings of the answers (firebase.google.com/docs/reference/fcm/rest/v1/ErrorCode and
firebase.google.com/docs/cloud-messaging/scale-fcm):

* UNREGISTERED, and a token that is none, end all sending to that device.
* 429 and 5xx are tried later: not before ``Retry-After``, and without one not before a minute after 429.
* Other errors of the request are never tried again. A token of another project says nothing of the device: perhaps the
  setting is wrong, so that it is kept.
* Missing or refused credentials are the operator's to mend, so the push waits.

A repeat replaces what the device already shows, because all tries have the same tag (``apns-collapse-id`` on iOS).
"""

from __future__ import annotations

import hashlib
import json
import time
import unicodedata
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import quote

from cloudsched.adapters.delivery.webhook import parse_retry_after
from cloudsched.domain.documents.json_limits import truncate
from cloudsched.errors import AddressGone, DeliveryDelayed, DeliveryRefused

if TYPE_CHECKING:
    from collections.abc import Callable

    import requests

    from cloudsched.engine.ports.sender import Message, Recipient

URL: Final = "https://fcm.googleapis.com"
TIMEOUT_SECONDS: Final = 15.0
"""The longest time of a whole request, to the end of its answer."""
MAX_ANSWER: Final = 100_000
"""The number of bytes of an answer that are read."""
MAX_TITLE: Final = 200
MAX_BODY: Final = 1_200
"""The bytes of title and text that are sent: FCM takes 4,096 with everything around them, and JSON doubles quotes."""
_SCOPE: Final = "https://www.googleapis.com/auth/firebase.messaging"
_SERVICE: Final = "Firebase Cloud Messaging"
_WAIT_AFTER_429: Final = timedelta(minutes=1)
_MAX_COLLAPSE_ID: Final = 64
_OK, _BAD_REQUEST, _FORBIDDEN, _TOO_MANY = 200, 400, 403, 429


LimitSession: TypeAlias = "Callable[..., requests.Session]"
"""Returns a session with limits, given one, `max_seconds` and `max_bytes` (`adapters.safe_http.limit_session`)."""


class FcmSender:
    """Sends each message as a push to one device."""

    def __init__(self, project: str, limit: LimitSession) -> None:
        self._limit = limit
        self._url = f"{URL}/v1/projects/{quote(project, safe='')}/messages:send"

    def send(self, message: Message, recipient: Recipient) -> str:
        """Push a message, and return the name that FCM gave it."""
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - imported when the first push is sent
        from requests import RequestException  # noqa: PLC0415 - likewise

        body = json.dumps(write_push(message, recipient.address), ensure_ascii=False).encode("utf-8", "replace")
        headers = {"Content-Type": "application/json; charset=UTF-8"}
        try:
            response = self._session.post(
                self._url, data=body, headers=headers, timeout=TIMEOUT_SECONDS, allow_redirects=False
            )
            content = _read_json(response)
        except GoogleAuthError as error:
            raise DeliveryDelayed(_SERVICE, f"this program has no valid credentials: {error}") from error
        except (RequestException, OSError) as error:
            raise DeliveryDelayed(_SERVICE, f"it did not answer ({type(error).__name__})") from error
        if response.status_code != _OK:
            raise _from_answer(response.status_code, content.get("error"), response.headers.get("Retry-After"))
        return str(content.get("name") or message.id)

    @cached_property
    def _session(self) -> requests.Session:
        import google.auth  # noqa: PLC0415 - see `send`
        from google.auth.transport.requests import AuthorizedSession  # noqa: PLC0415 - likewise

        credentials, _ = google.auth.default(scopes=[_SCOPE])
        session = AuthorizedSession(credentials)  # type: ignore[no-untyped-call]  # no types
        return self._limit(session, max_seconds=TIMEOUT_SECONDS, max_bytes=MAX_ANSWER)


def write_push(message: Message, token: str) -> dict[str, Any]:
    """Return the body of the request that pushes a message to a device. It is the same for all tries."""
    tag = message.id if len(message.id) <= _MAX_COLLAPSE_ID else hashlib.sha256(message.id.encode()).hexdigest()
    ids = {name: str(message.data[name]) for name in ("taskId", "executionId") if name in message.data}
    return {
        "message": {
            "token": token,
            "notification": {"title": _shorten(message.title, MAX_TITLE), "body": _shorten(message.body, MAX_BODY)},
            "data": {"messageId": message.id, "kind": message.kind, **ids},
            "android": {"notification": {"tag": tag}},
            "apns": {
                "headers": {"apns-collapse-id": tag},
                "payload": {"aps": {"thread-id": message.thread[:_MAX_COLLAPSE_ID]}},
            },
            "webpush": {"notification": {"tag": tag}},
        }
    }


def _shorten(text: str, size: int) -> str:
    """Return the beginning of a text, without control characters: JSON makes six bytes of one."""
    return truncate(
        "".join(" " if unicodedata.category(each) == "Cc" and each != "\n" else each for each in text), size
    )


def _from_answer(status: int, error: object, retry_after: str | None) -> DeliveryDelayed | DeliveryRefused:
    found: dict[str, Any] = error if isinstance(error, dict) else {}
    details = [each for each in _as_list(found.get("details")) if isinstance(each, dict)]
    code = next((str(each["errorCode"]) for each in details if "errorCode" in each), str(found.get("status", "")))
    text = " ".join(f"{status} {code}: {found.get('message', '')}".split())[:500]
    if code == "UNREGISTERED" or (status == _BAD_REQUEST and _blames_token(details)):
        return AddressGone(f"Firebase Cloud Messaging does not know the device any more: {text}")
    if status == _BAD_REQUEST or (status == _FORBIDDEN and code == "SENDER_ID_MISMATCH"):
        return DeliveryRefused(f"Firebase Cloud Messaging refuses the push: {text}")
    wait = parse_retry_after(retry_after, time.time())
    return DeliveryDelayed(_SERVICE, text, _WAIT_AFTER_429 if wait is None and status == _TOO_MANY else wait)


def _blames_token(details: list[dict[str, Any]]) -> bool:
    violations = [one for each in details for one in _as_list(each.get("fieldViolations"))]
    return any(isinstance(each, dict) and each.get("field") == "message.token" for each in violations)


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _read_json(response: requests.Response) -> dict[str, Any]:
    try:
        content = response.json()
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
