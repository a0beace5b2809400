"""What tasks can run. Each handler is a plain function with a typed payload; add your own below."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, HttpUrl
from pydantic.alias_generators import to_camel

from cloudsched import App, Context, Fail, Retry
from cloudsched.adapters.safe_http import make_session
from cloudsched.errors import InvalidInput

app = App()


class Payload(BaseModel):
    """A payload: camelCase in JSON, and nothing in it that its handler does not know."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True)


class UptimeCheck(Payload):
    """Which page to look at, and what to expect."""

    url: HttpUrl
    """http or https."""
    expect_status: Annotated[int, Field(ge=100, le=599)] = 200
    timeout_seconds: Annotated[float, Field(gt=0, le=30)] = 10
    """How long the connection, and then the answer, may let us wait."""


class UptimeResult(BaseModel):
    """What an uptime check found."""

    status: int
    milliseconds: float


@app.handler("check-uptime", retry=2, expected_duration=timedelta(minutes=2))
def check_uptime(payload: UptimeCheck) -> UptimeResult | Retry | Fail:
    """Ask for a page, and record its status and how long it took to begin; a wrong status is a failure.

    Redirects are an answer like any other, and are not followed. An address that is not public fails at once.
    """
    began = time.perf_counter()
    try:
        with (
            make_session(app.settings.access.reachable) as web,
            web.get(str(payload.url), timeout=payload.timeout_seconds, allow_redirects=False, stream=True) as response,
        ):
            elapsed = time.perf_counter() - began
    except InvalidInput as error:
        return Fail(str(error))
    measured = UptimeResult(status=response.status_code, milliseconds=round(elapsed * 1000, 1))
    if measured.status != payload.expect_status:
        return Retry(f"{payload.url} answered {measured.status} after {measured.milliseconds} ms")
    return measured


class Reminder(Payload):
    """What to remind somebody of."""

    text: Annotated[str, Field(min_length=1, max_length=2000)]


@app.handler("remind", retry=False, expected_duration=timedelta(seconds=30))
def remind(ctx: Context, payload: Reminder) -> str:
    """Put a message into the owner's inbox."""
    ctx.notify(ctx.task.delivery_title or ctx.task.title, payload.text)
    return payload.text
