"""An app with two small handlers, for tests of what lies in front of it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from cloudsched import App, Settings


class Greeting(BaseModel):
    """What the greeting handler takes."""

    name: str
    times: int = 1


app = App(Settings())


@app.handler("greet", retry=2, access="users")
def greet(greeting: Greeting) -> str:
    return f"hello {greeting.name}"


@app.handler("anything", access="users")
def anything(payload: dict[str, Any]) -> dict[str, Any]:
    return payload
