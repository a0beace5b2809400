"""What the tests of the TypeScript client run."""

from __future__ import annotations

import logging
from typing import Any

from pydantic import BaseModel

from cloudsched import App, Context

app = App()


class Greeting(BaseModel):
    """What the greeting needs."""

    name: str
    times: int = 1


@app.handler("greet", access="users", logs="owner")
def greet(greeting: Greeting) -> str:
    """Greet somebody."""
    logging.getLogger("greeter").info("greeting %s", greeting.name)
    return " ".join(["hello", *[greeting.name] * greeting.times])


@app.handler("echo")
def echo(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the payload."""
    return payload


@app.handler("ask")
def ask(ctx: Context) -> object:
    """Wait for an approval, and return what it says."""
    return {"by": ctx.wait_for("approved").by}
