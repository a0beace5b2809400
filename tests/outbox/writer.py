"""A process that writes orders with their tasks, rolls every third back, and hands the others over, until it ends."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

from pydantic import BaseModel
from sqlalchemy import create_engine, insert
from sqlalchemy.orm import Session
from tests.outbox.orders import ORDERS

from cloudsched import App, Settings
from cloudsched.engine.ports.clock import Clock
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.outbox.sqlalchemy import SqlalchemyOutbox


class Reminder(BaseModel):
    """What the handler is given."""

    text: str


class NoQueue:
    """A queue that takes everything and delivers nothing: the tasks are only counted."""

    def create(self, message: QueueMessage) -> None: ...

    def close(self) -> None: ...

    def purge(self) -> None: ...


def make_app(data: Path, clock: Clock | None = None) -> App:
    app = App(Settings(store="sqlite", data=data, secret="x" * 32), dispatcher=NoQueue(), clock=clock)
    app.handler("remind")(_remind)
    return app


def _remind(reminder: Reminder) -> str:
    return reminder.text


def main(url: str, data: str, name: str) -> None:
    """Write until the process is killed, one line of output for each transaction."""
    engine = create_engine(url)
    outbox = SqlalchemyOutbox(engine, make_app(Path(data)))
    with outbox.relay():
        for number in count():
            with Session(engine) as session:
                order = f"order-{name}-{number}"
                session.execute(insert(ORDERS).values(id=order))
                outbox.create(session, handler="remind", payload={"text": "Pay"}, id=order, schedule="in 1 hour")
                if number % 3:
                    session.commit()
                else:
                    session.rollback()
            print(number, flush=True)  # noqa: T201 - the test counts them


if __name__ == "__main__":
    main(*sys.argv[1:])
