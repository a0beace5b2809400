"""The page inside a web app: it stands below any prefix, and opens nothing that the API refuses."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import pytest
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.test import Client as Browser
from werkzeug.test import TestResponse
from werkzeug.wrappers import Response

import cloudsched
from cloudsched import App, Embedded, Settings, Visitor
from cloudsched.config.access import Access
from cloudsched.dashboard.sign_in import SESSION_SECONDS
from cloudsched.errors import Misconfigured
from cloudsched.local import folder_sessions
from cloudsched.local.own_pages import PageLocation, Pages
from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import Role

if TYPE_CHECKING:
    from cloudsched.local.visitor import Identify

ADMIN, VIEWER = create_key("boss", Role.ADMIN), create_key("guest", Role.VIEWER)
USER = create_key("ada", Role.USER, "ada")
KEYED = Settings(access=Access(api_keys=tuple(str(kept) for _, kept in (ADMIN, VIEWER, USER))))
OPEN, CLOSED = Settings(access=Access(open=True)), Settings(access=Access())
BASE = "http://shop.example"
HERE = {"REMOTE_ADDR": "127.0.0.1"}
APPS: list[App] = []
"""What the tests have embedded, the latest last."""
PAGES = ("", "tasks", "tasks/of-ada", "calendar", "queues", "usage", "deliveries", "new", "changes", "nothing")


@pytest.fixture
def embed(tmp_path: Path) -> Iterator[Callable[..., Browser]]:
    """Mount an app with two tasks below a prefix; return a browser."""
    started: list[Embedded] = []

    def start(settings: Settings, *, page: bool | Identify = True, prefix: str = "/scheduler") -> Browser:
        app = App(Settings())

        @app.handler("note", access="users")
        def note() -> None: ...

        APPS.append(app)
        embedding = cloudsched.embedded(app, tmp_path / "data", settings=settings, page=page)
        embedding.start()
        started.append(embedding)
        for owner in ("ada", "bob"):
            app.create(id=f"of-{owner}", owner=owner, handler="note", schedule="in 3 days")
        return Browser(DispatcherMiddleware(Response("the shop", status=418), {prefix: embedding}))

    yield start
    for embedding in started:
        embedding.stop()


def sign_in(browser: Browser, key: str, base: str = BASE, prefix: str = "/scheduler") -> TestResponse:
    origin = {"Origin": base}
    return browser.post(f"{prefix}/sign-in", data={"key": key, "then": "tasks"}, base_url=base, headers=origin)


@pytest.mark.parametrize(
    ("peer", "base", "headers"),
    [
        ("10.0.0.7", "http://localhost", {}),
        ("", "http://localhost", {}),
        ("127.0.0.1", "http://localhost", {"X-Forwarded-For": "10.0.0.7"}),
        ("127.0.0.1", BASE, {}),
    ],
)
def test_an_open_api_opens_the_page_to_its_own_machine_only(
    embed: Callable[..., Browser], peer: str, base: str, headers: dict[str, str]
) -> None:
    """Not to another one, to whom a proxy forwards, by a Unix socket, or by a name that may be rebound."""
    browser = embed(OPEN)
    assert "of-ada" in browser.get("/scheduler/tasks", base_url="http://localhost", environ_overrides=HERE).text
    for path in ("/scheduler/v1/tasks", *(f"/scheduler/{path}" for path in PAGES)):
        answer = browser.get(path, base_url=base, headers=headers, environ_overrides={"REMOTE_ADDR": peer})
        assert answer.status_code in {401, 403} or (path.endswith("/nothing") and answer.status_code == 404), path
        assert "of-ada" not in answer.text
    given = {"Origin": base, **headers}
    forms: list[tuple[str, dict[str, str]]] = [("tasks/of-ada/verbs/pause", {}), ("new", {"handler": "note"})]
    for path, form in forms:
        answer = browser.post(
            f"/scheduler/{path}", data=form, base_url=base, headers=given, environ_overrides={"REMOTE_ADDR": peer}
        )
        assert answer.status_code in {401, 403}, path


def test_without_credentials_and_unopened_nobody_is_let_in(embed: Callable[..., Browser]) -> None:
    """As at the API: not even the machine itself."""
    browser = embed(CLOSED)
    for path in PAGES:
        answer = browser.get(f"/scheduler/{path}", base_url="http://localhost", environ_overrides=HERE)
        assert answer.status_code == 503
        assert "CLOUDSCHED_API_KEYS" in answer.text
        assert "page=your_function" in answer.text
    assert browser.get("/scheduler/v1/tasks", base_url="http://localhost", environ_overrides=HERE).status_code == 503


def test_where_there_are_keys_everybody_signs_in_with_their_own(embed: Callable[..., Browser]) -> None:
    """Not one address answers without; then each has the role of the key, and the API takes no cookie."""
    browser = embed(KEYED)
    for path in PAGES:
        for base, peer in ((BASE, "10.0.0.7"), ("http://localhost", "127.0.0.1")):
            answer = browser.get(f"/scheduler/{path}", base_url=base, environ_overrides={"REMOTE_ADDR": peer})
            assert answer.status_code == 401, path
            assert "<h1>Sign in</h1>" in answer.text
            assert "of-bob" not in answer.text
    assert sign_in(browser, "csk_boss_" + "A" * 43).status_code == 401
    assert "Set-Cookie" not in sign_in(browser, "no key").headers
    seen = {}
    for name, (key, _) in {"boss": ADMIN, "guest": VIEWER, "ada": USER}.items():
        assert sign_in(browser, key).status_code == 303
        tasks = browser.get("/scheduler/tasks", base_url=BASE).text
        verb = browser.post("/scheduler/tasks/of-ada/verbs/pause", base_url=BASE, headers={"Origin": BASE})
        seen[name] = ("of-ada" in tasks, "of-bob" in tasks, verb.status_code)
        browser.post("/scheduler/tasks/of-ada/verbs/resume", base_url=BASE, headers={"Origin": BASE})
        assert browser.get("/scheduler/v1/tasks", base_url=BASE).status_code == 401
    assert seen == {"boss": (True, True, 303), "guest": (True, True, 403), "ada": (True, False, 303)}


def test_a_session_is_for_the_mount_and_for_all_processes_of_the_server(
    embed: Callable[..., Browser], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cookie is sent nowhere else; what another process makes of the folder knows it, until it ends."""
    browser = embed(KEYED)
    answer = sign_in(browser, ADMIN[0])
    for part in ("HttpOnly", "SameSite=Strict"):
        assert part in answer.headers["Set-Cookie"]
    assert browser.get("/", base_url=BASE).request.cookies == {}
    checked = urljoin(f"{BASE}/scheduler/sign-in", answer.headers["Location"])
    back = browser.get(checked.removeprefix(BASE), base_url=BASE)
    assert urljoin(checked, back.headers["Location"]) == f"{BASE}/scheduler/tasks"
    (file,) = (tmp_path / "data/sessions").iterdir()
    token = answer.headers["Set-Cookie"].partition("=")[2].partition(";")[0]
    assert ADMIN[0].encode() not in file.read_bytes()
    assert token not in file.name
    assert (file.stat().st_mode | file.parent.stat().st_mode) & 0o077 == 0
    sessions = folder_sessions.FolderSessions(file.parent, Pages(App(), PageLocation()))
    assert sessions.find(token) is not None
    assert sessions.find(token[:-1] + ("A" if token[-1] != "A" else "B")) is None
    out = browser.post("/scheduler/sign-out", base_url=BASE, headers={"Origin": BASE})
    assert out.status_code == 200
    assert sessions.find(token) is None
    sign_in(browser, ADMIN[0])
    assert browser.get("/scheduler/tasks", base_url=BASE).status_code == 200
    end = time.time() + SESSION_SECONDS + 1
    monkeypatch.setattr("cloudsched.local.folder_sessions.time.time", lambda: end)
    assert browser.get("/scheduler/tasks", base_url=BASE).status_code == 401


def test_sessions_are_bounded(embed: Callable[..., Browser], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond that, whoever signed in first has to do it again."""
    monkeypatch.setattr(folder_sessions, "SESSIONS", 2)
    browser = embed(KEYED)
    browsers = [Browser(browser.application) for _ in range(3)]
    for number, each in enumerate(browsers):
        sign_in(each, ADMIN[0])
        for file in (tmp_path / "data/sessions").iterdir():
            began = file.stat().st_mtime - (10 if number < 2 else 0)
            os.utime(file, (began, began))
    assert [each.get("/scheduler/tasks", base_url=BASE).status_code for each in browsers] == [401, 200, 200]


def test_a_key_that_is_taken_back_opens_nothing_any_more(embed: Callable[..., Browser]) -> None:
    """Although a session has it: the API is asked with the key each time."""
    browser = embed(KEYED)
    sign_in(browser, USER[0])
    assert browser.get("/scheduler/tasks", base_url=BASE).status_code == 200
    APPS[-1].container.settings = Settings(access=Access(api_keys=(str(ADMIN[1]),)))
    assert browser.get("/scheduler/tasks", base_url=BASE).status_code == 401


def test_the_web_app_says_who_looks(embed: Callable[..., Browser]) -> None:
    """In the role that it names, and nobody whom it does not know; a form of another site changes nothing."""
    visitors = {"ada": Visitor("ada", "user"), "bob": Visitor("bob", "reader"), "eve": Visitor("eve", "viewer")}
    visitors["boss"] = Visitor("boss", "admin")
    browser = embed(CLOSED, page=lambda environ: visitors.get(environ.get("HTTP_X_USER", "")))
    seen = {}
    for name in ("ada", "bob", "eve", "boss", "mallory"):
        given = {"X-User": name}
        tasks = browser.get("/scheduler/tasks", base_url=BASE, headers=given).text
        path = "/scheduler/tasks/of-ada/verbs/pause"
        for origin in ({}, {"Origin": "https://evil.example"}, {"Origin": BASE, "Sec-Fetch-Site": "cross-site"}):
            assert browser.post(path, base_url=BASE, headers={**given, **origin}).status_code == 403
        verb = browser.post(path, base_url=BASE, headers={**given, "Origin": BASE}).status_code
        seen[name] = ("of-ada" in tasks, "of-bob" in tasks, verb)
        assert browser.get("/scheduler/v1/tasks", base_url=BASE, headers=given).status_code == 503
    browser.post(path, base_url=BASE, headers={"X-User": "boss", "Origin": BASE})
    assert seen == {
        "ada": (True, False, 303),
        "bob": (False, True, 404),
        "eve": (True, True, 403),
        "boss": (True, True, 303),
        "mallory": (False, False, 403),
    }


@pytest.mark.parametrize(("name", "role"), [("ada", "worker"), ("ada", "delegate"), ("", "user"), ("a/b", "user")])
def test_a_visitor_is_somebody_in_a_role_of_a_person(name: str, role: str) -> None:
    """Anything else is refused where it is made."""
    with pytest.raises(Misconfigured):
        Visitor(name, role)


@pytest.mark.parametrize("prefix", ["/scheduler", "/a/b/c"])
def test_no_page_leads_out_of_its_mount(embed: Callable[..., Browser], prefix: str) -> None:
    """Every link, file and form of every page stays below the prefix, the form to sign in, too."""
    browser = embed(KEYED, prefix=prefix)
    bare = browser.get(prefix, base_url=BASE)
    assert urljoin(f"{BASE}{prefix}", bare.headers["Location"]) == f"{BASE}{prefix}/"
    for is_signed_in in (False, True):
        if is_signed_in:
            sign_in(browser, ADMIN[0], prefix=prefix)
        for path in PAGES:
            url = f"{BASE}{prefix}/{path}"
            answer = browser.get(f"{prefix}/{path}", base_url=BASE)
            assert answer.status_code in ({200, 404} if is_signed_in else {401})
            for link in re.findall(r'(?:href|src|action|data-root)="([^"#]+)"', answer.text):
                assert urljoin(url, link.replace("&amp;", "&")).startswith(f"{BASE}{prefix}/"), (url, link)
