"""Describe in OpenAPI what this service posts to other people's endpoints (``webhooks`` of OpenAPI 3.1)."""

from __future__ import annotations

from typing import Any, Final

from cloudsched.domain.responses.webhooks import WEBHOOKS, VerificationWebhook
from cloudsched.web.api.openapi_schemas import ref

Json = dict[str, Any]

_HEADERS: Final = {
    "webhook-id": ("Names the message, also if it comes again.", r"^[A-Za-z0-9_-]{1,200}$", "msg_2Yh8Qv"),
    "webhook-timestamp": ("The time of this try, in seconds since 1970.", r"^[0-9]+$", "1798794000"),
    "webhook-signature": (
        "Signatures of `id.timestamp.body` by HMAC-SHA256, one for each valid secret, separated by spaces.",
        r"^v1,[A-Za-z0-9+/]+={0,2}( v1,[A-Za-z0-9+/]+={0,2})*$",
        "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
    ),
}
"""The headers of Standard Webhooks: what each is, its pattern, and an example."""
_TAKEN: Final = {"description": "The message is taken. It may come again, with the same `webhook-id`."}
_ANSWERS: Final = {
    "2XX": _TAKEN,
    "410": {"description": "No more messages are wanted at this address: a person's webhook is removed."},
    "default": {"description": "The message is sent again, and no sooner than `Retry-After` says."},
}


def describe_webhooks() -> Json:
    """Return the ``webhooks`` of the API's document."""
    return {name: {"post": _describe(name)} for name in WEBHOOKS}


def _describe(name: str) -> Json:
    model = WEBHOOKS[name]
    summary, _, more = " ".join((model.__doc__ or "").split()).partition(". ")
    answers: Json = dict(_ANSWERS)
    if model is VerificationWebhook:
        challenge = {"type": "object", "properties": {"challenge": {"type": "string"}}, "required": ["challenge"]}
        about = "The challenge of `data`, and nothing else: the endpoint wants the messages."
        content = {"text/plain": {"schema": {"type": "string"}}, "application/json": {"schema": challenge}}
        answers = {
            "2XX": {"description": about, "content": content},
            "default": {"description": "Anything else: it does not want them."},
        }
    return {
        "operationId": f"receive_{name}",
        "tags": ["People"],
        "summary": summary.removesuffix(".") + ".",
        "description": f"{more} Signed as Standard Webhooks says (https://www.standardwebhooks.com).".strip(),
        "parameters": [
            {
                "name": header,
                "in": "header",
                "required": True,
                "description": about,
                "schema": {"type": "string", "pattern": pattern},
                "example": example,
            }
            for header, (about, pattern, example) in _HEADERS.items()
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": ref(model.__name__)}}},
        "responses": answers,
        "security": [],
    }
