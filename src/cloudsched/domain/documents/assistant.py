"""What a task says that the built-in handler `assistant` does."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, StringConstraints

from cloudsched.domain.documents.document import WireModel

ASSISTANT_HANDLER: Final = "assistant"
"""The name of the handler. It has no prefix: people name it themselves."""
MAX_TOOLS: Final = 20


class AssistantPayload(WireModel):
    """What the assistant may use. What it does is the task's `purpose`."""

    tools: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=200)], ...],
        Field(max_length=MAX_TOOLS),
    ] = ()
    """The handlers that it may call, of those that the app opens to it."""
