"""A local server that answers as FCM's HTTP v1 API is documented to.

Sources: firebase.google.com/docs/reference/fcm/rest/v1/projects.messages/send, …/rest/v1/FcmError and …/ErrorCode.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from werkzeug.wrappers import Request, Response

from cloudsched.local.wsgi_server import WebServer

PATH = re.compile(r"/v1/projects/([a-z0-9-]+)/messages:send")
FCM_ERROR = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"
STATUSES = {
    "UNREGISTERED": (404, "NOT_FOUND"),
    "SENDER_ID_MISMATCH": (403, "PERMISSION_DENIED"),
    "QUOTA_EXCEEDED": (429, "RESOURCE_EXHAUSTED"),
    "UNAVAILABLE": (503, "UNAVAILABLE"),
    "INTERNAL": (500, "INTERNAL"),
    "THIRD_PARTY_AUTH_ERROR": (401, "UNAUTHENTICATED"),
    "INVALID_ARGUMENT": (400, "INVALID_ARGUMENT"),
}
"""The HTTP status and the canonical code of each error of FCM."""


@dataclass
class FcmServer:
    """What the server does, and what it was sent.

    Attributes:
        errors: The error code with which it answers for a token.
        bad_tokens: What it takes for no token at all.
        headers: The headers of its errors.
        raw: An answer without JSON, in place of all others: status and body.
    """

    url: str = ""
    errors: dict[str, str] = field(default_factory=dict)
    bad_tokens: set[str] = field(default_factory=set)
    headers: dict[str, str] = field(default_factory=dict)
    raw: tuple[int, str] | None = None
    pushed: list[dict[str, Any]] = field(default_factory=list)
    credentials: list[str | None] = field(default_factory=list)

    def answer(self, request: Request) -> Response:
        match = PATH.fullmatch(request.path)
        if self.raw is not None:
            return Response(self.raw[1], self.raw[0])
        if match is None or request.method != "POST":
            return Response("Not Found", 404)
        self.credentials.append(request.headers.get("Authorization"))
        message = json.loads(request.get_data())["message"]
        token = message["token"]
        if token in self.bad_tokens:
            violation = {"field": "message.token", "description": "Invalid registration token"}
            more = {"@type": BAD_REQUEST, "fieldViolations": [violation]}
            return self._refuse("INVALID_ARGUMENT", more)
        counted = json.dumps({**message, "token": ""}, ensure_ascii=False).encode()
        is_text = all(isinstance(each, str) for each in message["data"].values())
        if not is_text or len(counted) > 4096 or len(message["apns"]["headers"]["apns-collapse-id"]) > 64:
            return self._refuse("INVALID_ARGUMENT")
        if token in self.errors:
            return self._refuse(self.errors[token])
        self.pushed.append(message)
        return Response(json.dumps({"name": f"projects/{match.group(1)}/messages/0:{len(self.pushed)}"}))

    def _refuse(self, code: str, *details: dict[str, Any]) -> Response:
        status, canonical = STATUSES[code]
        error = {"code": status, "message": f"It is {code}.", "status": canonical}
        error["details"] = [{"@type": FCM_ERROR, "errorCode": code}, *details]
        return Response(json.dumps({"error": error}), status, self.headers)


@contextmanager
def serve_fcm() -> Iterator[FcmServer]:
    """Serve on a free port of this machine."""
    state = FcmServer()

    @Request.application
    def answer(request: Request) -> Response:
        return state.answer(request)

    with WebServer(answer) as server:
        server.serve()
        state.url = f"http://{server.address}"
        yield state
