"""An app with handlers that are open for drafts, and some that are not."""

from __future__ import annotations

from pydantic import BaseModel

from cloudsched import App, Settings


class Reminder(BaseModel):
    """What a reminder is given."""

    text: str
    city: str = ""
    times: int = 1


class Numbers(BaseModel):
    """What a report is given."""

    topic: str = ""


def make_app() -> App:
    """Return the app; each test has its own."""
    app = App(Settings())

    @app.handler("remind", access="users", draft="Sends a reminder")
    def remind(reminder: Reminder) -> str:
        return reminder.text

    @app.handler("report", access="users", draft="Writes a report")
    def report(numbers: Numbers) -> str:
        return numbers.topic

    @app.handler("audit", draft="Audits the accounts")
    def audit() -> None: ...

    @app.handler("closed", access="users")
    def closed() -> None: ...

    return app
