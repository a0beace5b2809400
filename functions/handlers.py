"""The handlers that tasks can run. Each is a plain function with a typed payload; add your own below."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from cloudsched import App, Context

app = App()


class Reminder(BaseModel):
    """The text of a reminder."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(min_length=1, max_length=2000)]


@app.handler("remind", retry=False, expected_duration=timedelta(seconds=30), access="users", draft="Sends a reminder")
def remind(ctx: Context, payload: Reminder) -> str:
    """Send a message to the owner's inbox."""
    ctx.notify(ctx.task.delivery_title or ctx.task.title, payload.text)
    return payload.text
