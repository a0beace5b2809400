"""Send pushes to Android, iOS and browsers by Firebase Cloud Messaging (FCM), with firebase-admin.

The meanings of the answers (firebase.google.com/docs/reference/fcm/rest/v1/ErrorCode and
firebase.google.com/docs/cloud-messaging/scale-fcm):

* UNREGISTERED, and a token that is none, end all sending to that device.
* 429 and 5xx are tried later: not before ``Retry-After``, and a 429 without one not before a minute.
* Other errors of the request are never tried again. A device whose token belongs to another project is kept,
  because the setting may be wrong.
* Missing or refused credentials are the operator's to mend, so the push waits.

A repeat replaces what the device already shows, because all tries have the same tag (``apns-collapse-id`` on
iOS). The library would try again by itself, wait as long as it is told, and follow redirects. So its session
is limited.
"""

from __future__ import annotations

import hashlib
import time
import unicodedata
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import quote
from uuid import uuid4

from cloudsched.domain.documents.json_limits import truncate
from cloudsched.errors import AddressGone, DeliveryDelayed, DeliveryRefused

if TYPE_CHECKING:
    from collections.abc import Callable

    import requests

    from cloudsched.engine.ports.sender import OutgoingMessage, Recipient

TIMEOUT_SECONDS: Final = 15.0
"""The longest time of a whole request, to the end of its answer."""
MAX_ANSWER: Final = 100_000
"""The number of bytes of an answer that are read."""
MAX_TITLE: Final = 200
MAX_BODY: Final = 1_200
"""The bytes of title and text that are sent: FCM takes 4,096 in all, and JSON doubles quotes."""
_SCOPE: Final = "https://www.googleapis.com/auth/firebase.messaging"
_SERVICE: Final = "Firebase Cloud Messaging"
_WAIT_AFTER_429: Final = timedelta(minutes=1)
_MAX_COLLAPSE_ID: Final = 64
_BAD_REQUEST: Final = 400
_TOO_MANY: Final = 429

LimitSession: TypeAlias = "Callable[..., requests.Session]"
"""Limits a session by `max_seconds` and `max_bytes`, and returns it (`adapters.safe_http.limit_session`)."""


class FcmSender:
    """Sends each message as a push to one device."""

    def __init__(self, project: str, limit: LimitSession) -> None:
        self._limit = limit
        self._project = quote(project, safe="")

    def send(self, message: OutgoingMessage, recipient: Recipient) -> str:
        """Push a message, and return the name that FCM gave it."""
        from firebase_admin import messaging  # type: ignore[import-untyped] # noqa: PLC0415 - see below
        from firebase_admin.exceptions import FirebaseError  # type: ignore[import-untyped] # noqa: PLC0415
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - likewise

        push = _to_library(write_push(message, recipient.address)["message"])
        try:
            app = self._app
            try:
                return str(messaging.send(push, app=app))
            except (OSError, AttributeError, LookupError, TypeError, ValueError) as error:
                # The library stumbles over JSON that is not of FCM's form, such as a proxy's.
                reason = f"it did not answer as documented ({type(error).__name__})"
                raise DeliveryDelayed(_SERVICE, reason) from error
        except GoogleAuthError as error:
            raise DeliveryDelayed(_SERVICE, f"this program has no valid credentials: {error}") from error
        except FirebaseError as error:
            raise _from_library(error) from error

    @cached_property
    def _app(self) -> Any:  # noqa: ANN401 - firebase-admin ships no types
        import firebase_admin  # noqa: PLC0415 - see `send`
        import google.auth  # noqa: PLC0415 - likewise
        from firebase_admin import messaging  # noqa: PLC0415 - likewise

        credentials, _ = google.auth.default(scopes=[_SCOPE])
        options = {"projectId": self._project, "httpTimeout": TIMEOUT_SECONDS}
        app = firebase_admin.initialize_app(credentials, options, f"cloudsched-{uuid4()}")
        session = messaging._get_messaging_service(app)._client.session  # noqa: SLF001 - no option limits it
        session.adapters.clear()  # they try again
        session.max_redirects = 0
        self._limit(session, max_seconds=TIMEOUT_SECONDS, max_bytes=MAX_ANSWER)
        return app


def write_push(message: OutgoingMessage, token: str) -> dict[str, Any]:
    """Return the body of the request that pushes a message to a device. It is the same for all tries."""
    tag = message.id
    if len(tag) > _MAX_COLLAPSE_ID:
        tag = hashlib.sha256(tag.encode()).hexdigest()
    ids = {name: str(message.data[name]) for name in ("taskId", "executionId", "answerUrl") if name in message.data}
    return {
        "message": {
            "token": token,
            "notification": {
                "title": _shorten(message.title, MAX_TITLE),
                "body": _shorten(message.body, MAX_BODY),
            },
            "data": {"messageId": message.id, "kind": message.kind, **ids},
            "android": {"notification": {"tag": tag}},
            "apns": {
                "headers": {"apns-collapse-id": tag},
                "payload": {"aps": {"thread-id": message.thread[:_MAX_COLLAPSE_ID]}},
            },
            "webpush": {"notification": {"tag": tag}},
        }
    }


def _to_library(push: dict[str, Any]) -> Any:  # noqa: ANN401 - firebase-admin ships no types
    from firebase_admin import messaging  # noqa: PLC0415 - see `FcmSender.send`

    android = push["android"]
    apns = push["apns"]
    webpush = push["webpush"]
    aps = messaging.Aps(thread_id=apns["payload"]["aps"]["thread-id"])
    made = messaging.Message(
        notification=messaging.Notification(**push["notification"]),
        data=push["data"],
        android=messaging.AndroidConfig(notification=messaging.AndroidNotification(**android["notification"])),
        apns=messaging.APNSConfig(headers=apns["headers"], payload=messaging.APNSPayload(aps)),
        webpush=messaging.WebpushConfig(notification=messaging.WebpushNotification(**webpush["notification"])),
    )
    # Not an argument: 7.7 deprecates it, in favour of one that earlier versions do not know.
    made.token = push["token"]
    return made


def _shorten(text: str, size: int) -> str:
    """Return the beginning of a text, without control characters: JSON makes six bytes of one."""
    controls = {each for each in text if unicodedata.category(each) == "Cc"} - {"\n"}
    return truncate(text.translate(dict.fromkeys(map(ord, controls), " ")), size)


def _from_library(error: Any) -> DeliveryDelayed | DeliveryRefused:  # noqa: ANN401 - a FirebaseError, without types
    from firebase_admin import messaging  # noqa: PLC0415 - see `FcmSender.send`

    response = error.http_response
    if response is None:
        return DeliveryDelayed(_SERVICE, f"it did not answer ({type(error.cause or error).__name__})")

    found = _read_error(response)
    details = [each for each in _as_list(found.get("details")) if isinstance(each, dict)]
    codes = [str(each["errorCode"]) for each in details if "errorCode" in each]
    code = next(iter(codes), str(found.get("status", "")))
    text = " ".join(f"{response.status_code} {code}: {found.get('message', '')}".split())[:500]
    is_bad = response.status_code == _BAD_REQUEST
    if isinstance(error, messaging.UnregisteredError) or (is_bad and _blames_token(details)):
        return AddressGone(f"Firebase Cloud Messaging does not know the device any more: {text}")
    if is_bad or isinstance(error, messaging.SenderIdMismatchError):
        return DeliveryRefused(f"Firebase Cloud Messaging refuses the push: {text}")

    from cloudsched.adapters.safe_http.user_posts import parse_retry_after  # noqa: PLC0415 - only when used

    wait = parse_retry_after(response.headers.get("Retry-After"), time.time())
    if wait is None and response.status_code == _TOO_MANY:
        wait = _WAIT_AFTER_429
    return DeliveryDelayed(_SERVICE, text, wait, has_answered=True)


def _blames_token(details: list[dict[str, Any]]) -> bool:
    violations = [one for each in details for one in _as_list(each.get("fieldViolations"))]
    return any(isinstance(each, dict) and each.get("field") == "message.token" for each in violations)


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _read_error(response: requests.Response) -> dict[str, Any]:
    try:
        return dict(response.json()["error"])
    except (LookupError, TypeError, ValueError):
        return {}
