"""The Flask extension: it starts with what serves, never in a test, and stands behind the app's own login."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask, Request, g, request
from tests.harness import wait_until

from cloudsched import App, Context, Settings, Visitor
from cloudsched.config.access import Access
from cloudsched.dashboard import downloads
from cloudsched.dashboard.api import Api
from cloudsched.errors import Misconfigured
from cloudsched.local.flask import Cloudsched

CLOSED = Settings(access=Access())


@pytest.fixture
def ran() -> list[str]:
    return []


@pytest.fixture
def app(ran: list[str]) -> App:
    app = App(Settings())

    @app.handler("note", access="users")
    def note(ctx: Context) -> None:
        ran.append(ctx.task.id)

    return app


@pytest.fixture
def service(app: App, tmp_path: Path) -> Iterator[Flask]:
    service = Flask("service")

    @service.before_request
    def log_in() -> None:
        g.user = request.headers.get("X-User")

    @service.get("/own")
    def own() -> str:
        return "own"

    def find_visitor(seen: Request) -> Visitor | None:
        assert seen.path.startswith("/tools/scheduler")
        return Visitor(g.user, "admin" if g.user == "boss" else "user") if g.user else None

    place = tmp_path / "data"
    Cloudsched(service, app, data=place, url_prefix="/tools/scheduler", page=find_visitor, settings=CLOSED)
    yield service
    service.extensions["cloudsched"].embedding.stop()


def test_what_serves_starts_it_and_other_programs_only_create(
    service: Flask, app: App, ran: list[str], tmp_path: Path
) -> None:
    """A program that imports the Flask app creates, and runs nothing; the first request starts it."""
    assert not (tmp_path / "data").exists()
    app.create(id="a", handler="note")
    assert [task.id for task in app.tasks().items] == ["a"]
    assert not service.extensions["cloudsched"].embedding.is_running
    assert service.test_client().get("/own").text == "own"
    assert service.extensions["cloudsched"].embedding.is_running
    wait_until(lambda: ran == ["a"], "it has run")


def test_a_test_starts_nothing(service: Flask, tmp_path: Path) -> None:
    """Where TESTING is set, a request leaves no folder, thread or lock behind."""
    service.testing = True
    assert service.test_client().get("/own").status_code == 200
    assert not (tmp_path / "data").exists()


def test_the_page_stands_behind_the_apps_login(service: Flask, app: App) -> None:
    """The function takes Flask's request and what a login has made of it; forms work without a token of the app."""
    browser = service.test_client()
    assert browser.get("/tools/scheduler/tasks").status_code == 403
    for owner in ("ada", "bob"):
        app.create(id=f"of-{owner}", owner=owner, handler="note", schedule="in 3 days")
    seen = {}
    for name in ("ada", "boss"):
        text = browser.get("/tools/scheduler/tasks", headers={"X-User": name}).text
        seen[name] = ("of-ada" in text, "of-bob" in text)
    assert seen == {"ada": (True, False), "boss": (True, True)}
    assert browser.get("/tools/scheduler/", headers={"X-User": "ada"}).status_code == 200
    assert browser.get("/tools/scheduler", headers={"X-User": "ada"}).status_code == 308
    given = {"X-User": "ada", "Origin": "http://localhost"}
    done = browser.post("/tools/scheduler/tasks/of-ada/verbs/pause", headers=given)
    assert (done.status_code, done.headers["Location"].startswith("../")) == (303, True)
    foreign = {"X-User": "ada", "Origin": "https://evil.example"}
    assert browser.post("/tools/scheduler/tasks/of-ada/verbs/resume", headers=foreign).status_code == 403
    assert app.get("of-ada").status == "PAUSED"
    assert browser.get("/tools/scheduler/v1/tasks", headers={"X-User": "boss"}).status_code == 503


def test_a_factory_makes_it_before_the_flask_app(app: App, tmp_path: Path) -> None:
    """The folder is named by the config; one that nobody names, and a second Flask app, are refused."""
    scheduler = Cloudsched(app=app, settings=CLOSED)
    service = Flask("service")
    with pytest.raises(Misconfigured, match="CLOUDSCHED_DATA"):
        scheduler.init_app(service)
    service.config.update(CLOUDSCHED_DATA=str(tmp_path / "data"))
    scheduler.init_app(service)
    with pytest.raises(Misconfigured, match="already"):
        scheduler.init_app(Flask("other"))
    try:
        assert service.test_client().get("/scheduler/health").status_code == 200
        assert (tmp_path / "data/tasks.db").exists()
    finally:
        scheduler.embedding.stop()


def test_a_download_is_sent_part_by_part(service: Flask, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its beginning is there before its end has been asked for; a page has its length."""
    monkeypatch.setattr(downloads, "PAGE_SIZE", 2)
    asked: list[str] = []
    get = Api.get

    def note_and_get(api: Api, path: str, **query: Any) -> Any:  # noqa: ANN401 - JSON
        asked.append(path)
        return get(api, path, **query)

    monkeypatch.setattr(Api, "get", note_and_get)
    for number in range(9):
        app.create(id=f"t{number}", owner="ada", handler="note", schedule="in 3 days")
    browser = service.test_client()
    answer = browser.get("/tools/scheduler/tasks.csv", headers={"X-User": "boss"}, buffered=False)
    assert answer.is_streamed
    parts = answer.iter_encoded()
    first = next(parts)
    assert asked.count("/v1/tasks") <= 2
    lines = (first + b"".join(parts)).decode().splitlines()
    assert asked.count("/v1/tasks") == 5
    assert sorted(line.split(",")[0] for line in lines[1:]) == [f"t{number}" for number in range(9)]
    assert answer.content_length is None
    assert browser.get("/tools/scheduler/tasks", headers={"X-User": "boss"}, buffered=False).content_length
