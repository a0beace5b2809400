"""A person who is asked, and services of chats on this machine, which answer as they are told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from tests.web.callers import RoleHarness, open_roles
from werkzeug.wrappers import Request, Response

from cloudsched import App, Context
from cloudsched.adapters.safe_http import make_session
from cloudsched.local.wsgi_server import WebServer
from cloudsched.people.senders.slack import SlackApp
from cloudsched.people.senders.telegram import TelegramBot
from cloudsched.people.wiring import PeopleWiring

TOKEN = "123456:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"  # noqa: S105 - made up
SECRET = "a-secret-of-twenty-characters"  # noqa: S105 - made up
make_local_session = partial(make_session, ["127.0.0.0/8"])


class Service:
    """A chat's service: it keeps what it is sent."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []
        self.status = 200
        self.answer: Any = {"ok": True, "result": {"message_id": 7}, "ts": "17.5"}
        self.answer_headers: dict[str, str] = {}
        self.url = ""

    def respond(self, request: Request) -> Response:
        self.calls.append((request.path, json.loads(request.get_data())))
        self.headers.append(dict(request.headers))
        return Response(json.dumps(self.answer), self.status, self.answer_headers, mimetype="application/json")


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    with WebServer(Request.application(made.respond)) as server:
        server.serve()
        made.url = f"http://{server.address}"
        yield made


@pytest.fixture
def bot(service: Service) -> TelegramBot:
    return TelegramBot(TOKEN, SECRET, make_local_session, service.url)


@pytest.fixture
def slack(service: Service) -> SlackApp:
    return SlackApp("xoxb-made-up-token", SECRET, make_local_session, service.url)


@pytest.fixture
def roles(bot: TelegramBot, slack: SlackApp) -> Iterator[RoleHarness]:
    """Bob is asked, in both chats. Eve has accounts, too."""
    app = App()

    @app.handler("renew")
    def renew(ctx: Context) -> list[object]:
        channels = ["TELEGRAM", "SLACK"]
        given, sender = ctx.wait_for(
            "decision",
            timeout=timedelta(days=1),
            by=("user:bob",),
            question="Renew <it>?",
            channels=channels,
            with_sender=True,
        )
        return [given["approved"], sender.person, sender.via]

    with open_roles(app) as opened:
        for owner in ("bob", "eve"):
            opened.sim.add_person(owner)
        PeopleWiring.of(app.container).replace(chat_apps={"TELEGRAM": bot, "SLACK": slack})
        yield opened


def ask(roles: RoleHarness) -> str:
    """Start a task of Ada's that asks Bob, and return its id."""
    task = roles.sim.app.create(owner="ada", title="A secret title", handler="renew")
    roles.sim.advance(timedelta(minutes=1))
    return task.id


def find_question(roles: RoleHarness, channel: str) -> str:
    """Return what the buttons of the latest question say."""
    return str(roles.sim.sent(channel, to="bob")[-1].message.question_id)


def find_account(roles: RoleHarness, owner: str, channel: str) -> str:
    person = roles.sim.app.person(owner)
    contact = person.telegram if channel == "TELEGRAM" else person.slack
    assert contact is not None
    return contact.id


def find_result(roles: RoleHarness, task_id: str) -> object:
    roles.sim.advance(timedelta(minutes=1))
    (run,) = roles.sim.executions(task_id)
    return run.content if run.status == "SUCCEEDED" else str(run.status)
