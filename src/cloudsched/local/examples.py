"""Handlers that need nothing from outside: what the demo runs, and the local stack where there are no others."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from cloudsched import App, Context
from cloudsched.domain.recurrence import time_zones as zones

app = App()


class Reminder(BaseModel):
    """What to remind somebody of."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(min_length=1, max_length=2000)]


@app.handler("remind", expected_duration=timedelta(seconds=30))
def remind(ctx: Context, payload: Reminder) -> str:
    """Put a message into the owner's inbox."""
    ctx.notify(ctx.task.title, payload.text)
    return payload.text


class Report(BaseModel):
    """What a report is about."""

    model_config = ConfigDict(extra="forbid")

    about: Annotated[str, Field(min_length=1, max_length=200)]


@app.handler("report", expected_duration=timedelta(minutes=1))
def report(ctx: Context, payload: Report) -> dict[str, str]:
    """Say what day it is where the task lives."""
    local = ctx.scheduled_for.astimezone(zones.load_tzinfo(ctx.task.timezone))
    return {"about": payload.about, "day": f"{local:%A %d %B %Y}"}
