"""What a task says that the built-in handler `assistant` does."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BeforeValidator, Field, StringConstraints

from cloudsched.domain.documents.document import WireModel

ASSISTANT_HANDLER: Final = "assistant"
"""The name of the handler. It has no prefix: people name it themselves."""
MAX_TOOLS: Final = 20


def _split(value: object) -> object:
    """Return the names in a text such as ``search, mail``, as drafts fill the field from words."""
    return [each for each in value.replace(",", " ").split() if each] if isinstance(value, str) else value


class AssistantPayload(WireModel):
    """What the assistant may use. What it does is the task's `purpose`."""

    tools: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=200)], ...],
        BeforeValidator(_split),
        Field(max_length=MAX_TOOLS),
    ] = ()
    """The handlers that it may call, of those that the app opens to it."""
