"""The names of built-in handlers that other code compares with, and the payload of `assistant`."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, StringConstraints

from cloudsched.domain.documents.document import WireModel

ASSISTANT_HANDLER: Final = "assistant"
"""The name of the handler. It has no prefix: people name it themselves."""
ERASE_HANDLER: Final = "cloudsched.erase-person"
EXPORT_HANDLER: Final = "cloudsched.export-person"
FOLLOW_HANDLER: Final = "cloudsched.follow-person"
"""The name of the handler of the tasks that plan again what follows a person to another time zone."""
MAX_TOOLS: Final = 20


class AssistantPayload(WireModel):
    """What the assistant may use. What it does is the task's `purpose`."""

    tools: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=200)], ...],
        Field(max_length=MAX_TOOLS),
    ] = ()
    """The handlers that it may call, of those that the app opens to it."""
