"""The handlers that the pages' commands name, on the stack and in the folder in which the commands are typed."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from cloudsched import App, Context

app = App()


class Reminder(BaseModel):
    """What to remind of."""

    text: str


class Query(BaseModel):
    """What was sold?"""

    product: str


@app.handler("remind", access="users", draft="Sends a reminder")
def remind(ctx: Context, payload: Reminder) -> str:
    """Send a message."""
    ctx.notify(ctx.task.title, payload.text)
    return payload.text


@app.handler("report", access="users")
def report(ctx: Context, payload: dict[str, Any]) -> str:
    """Use what a report uses."""
    ctx.used(queries=3)
    return str(payload.get("about", "all"))


@app.handler("order")
def follow_order(ctx: Context, payload: dict[str, Any]) -> Any:  # noqa: ANN401 - as the event has it
    """Take a step, and wait for an approval."""
    ctx.step("look-up", lambda: payload)
    return ctx.wait_for("approved")


@app.handler("monthly-close", early_events=("approved",))
def close_month(ctx: Context, _books: dict[str, Any]) -> Any:  # noqa: ANN401 - as the event has it
    """Wait for an approval, which may come before."""
    return ctx.wait_for("approved")


@app.handler("steps", retry=0)
def take_steps(ctx: Context, payload: dict[str, Any]) -> None:
    """Take four steps, and fail."""
    total = sum(ctx.step(f"step-{number}", lambda: len(payload)) for number in range(4))
    raise ValueError(total)


@app.handler("find-order", tool=True, access="users")
def find_order(payload: dict[str, Any]) -> dict[str, Any]:
    """Return an order."""
    return {"id": payload.get("id"), "owner": "ada", "status": "shipped"}


@app.handler("tell", tool=True, access="users")
def tell(ctx: Context, payload: dict[str, Any]) -> None:
    """Tell the owner."""
    ctx.notify(ctx.task.title, str(payload["text"]))


@app.handler("find-sales", tool=True, access="users", draft="Says how many pieces of a product were sold")
def find_sales(query: Query) -> dict[str, int]:
    """Return sales."""
    return {"sold": len(query.product)}


def do(payload: dict[str, Any]) -> dict[str, Any]:
    """Return what was given."""
    return payload


for _name in ("send", "backup", "run", "forward", "export", "render", "greet"):
    app.handler(_name, access="users")(do)
