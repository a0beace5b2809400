"""The handlers that tasks can run. Each is a plain function with a typed payload; add your own below."""

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
    """Base class of payloads: camelCase in JSON, unknown fields refused."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True)


class UptimeCheck(Payload):
    """The page to request and the status to expect."""

    url: HttpUrl
    """An http or https URL."""
    expect_status: Annotated[int, Field(ge=100, le=599)] = 200
    timeout_seconds: Annotated[float, Field(gt=0, le=30)] = 10
    """Timeout for connecting, and again for the response to begin."""


class Measurement(BaseModel):
    """The result of an uptime check."""

    status: int
    milliseconds: float


@app.handler("check-uptime", retry=2, expected_duration=timedelta(minutes=2), access="users")
def check_uptime(payload: UptimeCheck) -> Measurement | Retry | Fail:
    """Request a page, and record its status and the time until the response began. An unexpected status is a failure.

    Redirects are not followed; their status counts. An address that is not public fails without a retry.
    """
    started = time.perf_counter()
    try:
        with (
            make_session(app.container.settings.access.reachable) as web,
            web.get(str(payload.url), timeout=payload.timeout_seconds, allow_redirects=False, stream=True) as response,
        ):
            elapsed = time.perf_counter() - started
    except InvalidInput as error:
        return Fail(str(error))
    measurement = Measurement(status=response.status_code, milliseconds=round(elapsed * 1000, 1))
    if measurement.status != payload.expect_status:
        return Retry(f"{payload.url} answered {measurement.status} after {measurement.milliseconds} ms")
    return measurement


class Reminder(Payload):
    """The text of a reminder."""

    text: Annotated[str, Field(min_length=1, max_length=2000)]


@app.handler("remind", retry=False, expected_duration=timedelta(seconds=30), access="users")
def remind(ctx: Context, payload: Reminder) -> str:
    """Send a message to the owner's inbox."""
    ctx.notify(ctx.task.delivery_title or ctx.task.title, payload.text)
    return payload.text
