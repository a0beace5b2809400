"""The page at ``/ui/`` of `serve` and of an embedded app: closed to strangers, below any prefix of a proxy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urljoin

import pytest
import requests
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.test import Client as Browser
from werkzeug.wrappers import Request, Response

import cloudsched
from cloudsched import App, Settings
from cloudsched.config.access import Access
from cloudsched.local.service import run_service
from cloudsched.local.wsgi_server import WebServer
from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import Role

KEYS = {
    "boss": create_key("boss", Role.ADMIN),
    "guest": create_key("guest", Role.VIEWER),
    "ada": create_key("ada", Role.USER, "ada"),
    "gpu": create_key("gpu", Role.WORKER),
}
KEYED = Settings(access=Access(api_keys=tuple(str(kept) for _, kept in KEYS.values())))
OPEN, CLOSED = Settings(access=Access(open=True)), Settings(access=Access())
HERE = {"REMOTE_ADDR": "127.0.0.1"}
SECRET = "of-bob"  # noqa: S105 - a task's id
WAIT = 60


def make_app() -> App:
    app = App(Settings())

    @app.handler("note", access="users")
    def note() -> None: ...

    return app


def add_tasks(app: App) -> None:
    for owner in ("ada", "bob"):
        app.create(id=f"of-{owner}", owner=owner, handler="note", schedule="in 3 days")


@pytest.fixture
def embed(tmp_path: Path) -> Iterator[Callable[..., Browser]]:
    """Mount an app below a prefix, without a word about its page."""
    with ExitStack() as parts:

        def start(settings: Settings, **options: bool) -> Browser:
            app = make_app()
            embedding = parts.enter_context(cloudsched.embedded(app, tmp_path / "data", settings=settings, **options))
            add_tasks(app)
            return Browser(DispatcherMiddleware(Response("the shop", status=418), {"/jobs": embedding}))

        yield start


def test_an_embedded_app_has_a_page_that_is_closed(embed: Callable[..., Browser]) -> None:
    """Until something says who may use it: its 503 names the settings and the argument, to its own machine, too."""
    browser = embed(CLOSED)
    for path in ("/jobs/ui", "/jobs/ui/", "/jobs/ui/tasks", "/jobs/ui/static/page.css", "/jobs/ui/changes"):
        answer = browser.get(path, base_url="http://localhost", environ_overrides=HERE)
        assert answer.status_code == 503
        for name in ("CLOUDSCHED_API_KEYS", "CLOUDSCHED_OPEN=on", "embedded(app, data, page=your_function)"):
            assert name in answer.text
    assert browser.get("/jobs/v1/tasks").status_code == 503


def test_an_embedded_app_may_have_no_page(embed: Callable[..., Browser]) -> None:
    """If it says so."""
    assert embed(KEYED, page=False).get("/jobs/ui/", base_url="http://localhost").status_code == 404


def test_an_open_app_shows_its_page_to_its_own_machine_alone(embed: Callable[..., Browser]) -> None:
    """Not by a name that may be rebound, to another machine, through a proxy, or to a form of another site."""
    browser = embed(OPEN)
    own = browser.get("/jobs/ui/tasks", base_url="http://localhost", environ_overrides=HERE)
    assert SECRET in own.text
    strangers: list[tuple[str, str, dict[str, str]]] = [
        ("http://evil.example", "127.0.0.1", {}),
        ("http://localhost", "10.0.0.7", {}),
        ("http://localhost", "127.0.0.1", {"X-Forwarded-For": "10.0.0.7"}),
    ]
    for base, peer, headers in strangers:
        answer = browser.get("/jobs/ui/tasks", base_url=base, headers=headers, environ_overrides={"REMOTE_ADDR": peer})
        assert answer.status_code in {401, 403}
        assert SECRET not in answer.text
    for origin in ("http://evil.example", "null"):
        given = {"Origin": origin}
        path = "/jobs/ui/tasks/of-bob/verbs/pause"
        refused = browser.post(path, base_url="http://localhost", headers=given, environ_overrides=HERE)
        assert refused.status_code == 403


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The page of `serve` with keys, with the prefix that a proxy keeps or removes."""
    app = make_app()
    with run_service(app, KEYED, data=tmp_path / "data", root_path="/tools/ops") as service:
        add_tasks(app)
        yield service.url


def test_serve_asks_for_a_key_at_its_page(served: str) -> None:
    """Each sees and does there what their key allows, and strangers and workers nothing."""
    page = f"{served}/ui/"
    for path in ("", "tasks", "tasks/of-bob", "tasks.csv", "changes"):
        answer = requests.get(page + path, timeout=WAIT)
        assert answer.status_code == 401
        assert SECRET not in answer.text.replace("tasks/of-bob", "")
    origin = {"Origin": served}
    seen = {}
    for who, (key, _) in KEYS.items():
        with requests.Session() as session:
            session.post(f"{page}sign-in", data={"key": key, "then": "tasks"}, headers=origin, timeout=WAIT)
            shown = session.get(f"{page}tasks", timeout=WAIT)
            verbs = f"{page}tasks/of-bob/verbs"
            foreign = session.post(f"{verbs}/pause", headers={"Origin": "https://evil.example"}, timeout=WAIT)
            paused = session.post(f"{verbs}/pause", headers=origin, timeout=WAIT)
            seen[who] = (shown.status_code, SECRET in shown.text, foreign.status_code, paused.status_code)
            assert requests.get(f"{served}/v1/tasks", cookies=dict(session.cookies), timeout=WAIT).status_code == 401
    assert seen == {
        "boss": (200, True, 403, 200),
        "guest": (200, True, 403, 403),
        "ada": (200, False, 403, 404),
        "gpu": (401, False, 403, 401),
    }


@pytest.mark.parametrize("keeps_prefix", [False, True])
def test_people_sign_in_behind_a_proxy_with_a_prefix(served: str, *, keeps_prefix: bool) -> None:
    """At ``/tools/ops/ui/``: whether it removes the prefix or not, they stay signed in on every page."""

    @Request.application
    def forward(request: Request) -> Response:
        path = request.path if keeps_prefix else request.path.removeprefix("/tools/ops")
        headers = {**{name: value for name, value in request.headers if name != "Content-Length"}}
        headers |= {"X-Forwarded-Prefix": "/tools/ops", "X-Forwarded-For": "10.0.0.7"}
        query = request.query_string.decode()
        answer = requests.request(
            request.method,
            f"{served}{path}?{query}",
            headers=headers,
            data=request.get_data(),
            allow_redirects=False,
            timeout=WAIT,
        )
        kept = {name: value for name, value in answer.headers.items() if name in {"Location", "Set-Cookie"}}
        return Response(answer.content, answer.status_code, kept, content_type=answer.headers.get("Content-Type"))

    with WebServer(forward) as proxy, requests.Session() as session:
        proxy.serve()
        root = f"http://{proxy.address}/tools/ops/ui/"
        asked = session.get(f"{root}tasks/of-ada", timeout=WAIT)
        assert asked.status_code == 401
        action = urljoin(asked.url, re.findall(r'action="([^"]+)"', asked.text)[0])
        form = {"key": KEYS["boss"][0], "then": "tasks/of-ada"}
        shown = session.post(action, data=form, headers={"Origin": f"http://{proxy.address}"}, timeout=WAIT)
        assert (shown.status_code, shown.url) == (200, f"{root}tasks/of-ada")
        for path in ("", "tasks", "tasks/of-bob", "runs"):
            assert session.get(root + path, timeout=WAIT).status_code == 200
        assert [each.path for each in session.cookies] == ["/tools/ops/ui"]
