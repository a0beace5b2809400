"""Handlers without outside dependencies, for the demo and for a local stack that has none of its own."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from cloudsched import App, Context
from cloudsched.domain.recurrence import time_zones

app = App()


class Reminder(BaseModel):
    """The text of a reminder."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    text: Annotated[str, Field(min_length=1, max_length=2000)]


@app.handler("remind", expected_duration=timedelta(seconds=30), access="users", draft="Sends a reminder")
def remind(ctx: Context, payload: Reminder) -> str:
    """Send a message to the owner's inbox."""
    ctx.notify(ctx.task.title, payload.text)
    return payload.text


class Report(BaseModel):
    """The subject of a report."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    about: Annotated[str, Field(min_length=1, max_length=200)]


@app.handler("report", expected_duration=timedelta(minutes=1), access="users")
def report(ctx: Context, payload: Report) -> dict[str, str]:
    """Return the subject and the date in the task's time zone."""
    local = ctx.scheduled_for.astimezone(time_zones.load_tzinfo(ctx.task.timezone))
    return {"about": payload.about, "day": f"{local:%A %d %B %Y}"}
