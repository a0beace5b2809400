"""Where the request for a task came from: the snapshot of a conversation, which is kept with the task."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from cloudsched.domain.documents.document import Integer, WireModel

MAX_MESSAGES = 101
"""A conversation of a hundred messages, and the request itself."""

_Text = Annotated[str, StringConstraints(max_length=500)]
_LongText = Annotated[str, StringConstraints(max_length=10_000)]


class SourceMessage(WireModel):
    """A message of the conversation that a task comes from."""

    role: Literal["user", "assistant", "system", "tool"]
    content: _LongText


class SourceModel(WireModel):
    """The settings of the language model in that conversation: the built-in handler `assistant` follows them."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    """The model's name; the one of the app's settings if None."""
    max_turns: Integer | None = Field(default=None, ge=1, le=100)
    """How often it is asked in one execution; the app's limit if None or lower."""
    max_tokens: Integer | None = Field(default=None, ge=1, le=10**9)
    """How many tokens one execution may use; the app's limit if None or lower."""


class Source(WireModel):
    """Where the request for a task came from."""

    chat_id: _Text | None = None
    message_id: _Text | None = None
    context: dict[str, Any] | None = None
    """A snapshot of the request's context, stored unchanged."""
    messages: Annotated[tuple[SourceMessage, ...], Field(max_length=MAX_MESSAGES)] | None = None
    """The conversation that led to the task, the earliest message first. It is data, and may hold what others wrote."""
    model: SourceModel | None = None
    """The settings of the language model in that conversation."""
