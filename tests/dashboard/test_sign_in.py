"""The page of a local stack with keys: everybody signs in with their own, and nobody acts with another's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import pytest
import requests
from tests.dashboard.conftest import get, make_app
from tests.web.callers import PEOPLE, make_keys

from cloudsched.config.settings import Settings
from cloudsched.local.stack import Stack, run_stack

KEYS, ACCESS = make_keys(PEOPLE)
ADMIN, USER = KEYS["admin"], KEYS["ada"]
AS_ADMIN, AS_USER = {"X-Api-Key": ADMIN}, {"X-Api-Key": USER}


@pytest.fixture(scope="module")
def stack_with_keys() -> Iterator[Stack]:
    with run_stack(make_app(), base=Settings(access=ACCESS), store="sqlite") as stack:
        task = {
            "id": "t",
            "owner": "ada",
            "handler": "report",
            "schedule": {"at": "2100-01-01T00:00:00Z"},
        }
        assert ask(f"{stack.url}/v1/tasks", AS_ADMIN, task) == 201
        yield stack


@pytest.fixture
def keyed(stack_with_keys: Stack) -> str:
    return f"{stack_with_keys.url}/ui/"


def ask(url: str, headers: dict[str, str], body: object = None) -> int:
    """Ask the API, and return the status of its answer."""
    return requests.request("POST" if body else "GET", url, json=body, headers=headers, timeout=60).status_code


def sign_in(url: str, key: str, *, then: str = "", **headers: str) -> tuple[requests.Session, requests.Response]:
    """Sign in with a browser that sends the origin of its page."""
    session = requests.Session()
    session.request = partial(session.request, timeout=60)  # type: ignore[method-assign]
    session.headers["Origin"] = "/".join(url.split("/")[:3])
    form = {"key": key, "then": then}
    return session, session.post(f"{url}sign-in", form, headers=headers, allow_redirects=False)


def follow(session: requests.Session, response: requests.Response) -> str:
    """Return where somebody who has signed in is led to, once the browser has shown that it kept the cookie."""
    second = session.get(requests.compat.urljoin(response.url, response.headers["Location"]), allow_redirects=False)
    assert second.status_code == 303
    return str(requests.compat.urljoin(second.url, second.headers["Location"]))


def test_a_browser_that_keeps_no_cookie_is_told_so(keyed: str) -> None:
    """Instead of being asked for its key again and again. A wrong key is not said to be right."""
    _, response = sign_in(keyed, ADMIN, then="tasks/t")
    asked = get(requests.compat.urljoin(response.url, response.headers["Location"]))
    assert asked.status_code == 401
    assert "did not send back the cookie" in asked.text
    assert 'name="then" value="tasks/t"' in asked.text
    assert "cookie" not in sign_in(keyed, "csk_admin_" + "A" * 43)[1].text
    assert "cookie" not in get(f"{keyed}sign-in").text


def test_a_workers_key_opens_nothing(keyed: str) -> None:
    """It is for claims alone: no cookie, and no page. Nor does a made-up session, or a key as a cookie."""
    session, response = sign_in(keyed, KEYS["worker"])
    assert response.status_code == 401
    assert "Set-Cookie" not in response.headers
    assert session.get(f"{keyed}tasks").status_code == 401
    name = sign_in(keyed, ADMIN)[1].headers["Set-Cookie"].partition("=")[0]
    for value in ("", "x", ADMIN):
        assert requests.get(f"{keyed}tasks", cookies={name: value}, timeout=60).status_code == 401


@pytest.mark.parametrize("path", ["", "tasks", "tasks/t", "calendar", 'tasks?search="><script>x', "nothing"])
def test_without_a_key_nothing_is_shown(keyed: str, path: str) -> None:
    """Every address is a 401 with a form, of which it cannot end an attribute; no task, no time and no script."""
    response = get(keyed + path)
    assert response.status_code == 401
    assert "<h1>Sign in</h1>" in response.text
    assert "ada" not in response.text
    assert "<script>" not in response.text
    assert "unsafe" not in response.headers["Content-Security-Policy"]
    stylesheet = re.findall(r'href="([^"]+\.css)"', response.text)[0]
    assert get(requests.compat.urljoin(response.url, stylesheet)).status_code == 200


def test_a_key_opens_the_page_that_was_asked_for(keyed: str) -> None:
    """The cookie is for this page alone, no script reads it, no other site sends it, and it is not the key."""
    session, response = sign_in(keyed, ADMIN, then="tasks/t?tz=UTC")
    assert response.status_code == 303
    assert follow(session, response) == f"{keyed}tasks/t?tz=UTC"
    cookie = response.headers["Set-Cookie"]
    for part in ("HttpOnly", "SameSite=Strict"):
        assert part in cookie
    assert "Path" not in cookie  # so it is for what is below the form's own, which no proxy can falsify
    assert [each.path for each in session.cookies] == ["/ui"]
    assert ADMIN not in cookie
    assert re.search(r"csk_", cookie) is None
    page = session.get(f"{keyed}tasks/t")
    assert page.status_code == 200
    assert ADMIN not in page.text


def test_each_session_has_the_role_of_its_key(keyed: str) -> None:
    """A viewer neither pauses a task nor moves the clock, a user not the clock; signing out ends it on the server."""
    guest, _ = sign_in(keyed, KEYS["viewer"])
    user, _ = sign_in(keyed, USER)
    assert user.post(keyed, {"verb": "hour"}).status_code == 403
    assert "+1 h" not in user.get(keyed).text
    boss, _ = sign_in(keyed, ADMIN)
    assert guest.post(f"{keyed}tasks/t/verbs/pause").status_code == 403
    assert guest.post(keyed, {"verb": "hour"}).status_code == 403
    assert "+1 h" not in guest.get(keyed).text
    assert boss.post(f"{keyed}tasks/t/verbs/pause").status_code == 200
    assert boss.post(keyed, {"verb": "hour"}).status_code == 200
    cookies = dict(boss.cookies)
    assert boss.post(f"{keyed}sign-out").status_code == 200
    assert requests.get(f"{keyed}tasks", cookies=cookies, timeout=60).status_code == 401


def test_the_clock_of_a_stack_with_keys_needs_an_admins(keyed: str) -> None:
    """Whoever may read nothing neither sees nor moves it, a viewer and a user only see it, an admin moves it.

    A password does not count: a browser that has one sends it with whatever a page makes it send.
    """
    url = keyed.replace("/ui/", "/dev/clock")
    before = requests.get(url, headers=AS_ADMIN, timeout=60).json()["now"]
    move = {"advance": "PT1H"}
    nobodies: list[dict[str, str]] = [{}, {"X-Api-Key": ""}, {"X-Api-Key": "csk_x"}, {"Authorization": "Bearer a.b.c"}]
    nobodies += [{"X-Api-Key": ADMIN[:-1] + ("A" if ADMIN[-1] != "A" else "B")}, {"Authorization": "Basic eDp5"}]
    for headers in nobodies:
        assert (ask(url, headers), ask(url, headers, move)) == (401, 401), headers
    assert requests.post(url, json=move, auth=("", ADMIN), timeout=60).status_code == 401
    assert ask(url, {"X-Api-Key": KEYS["worker"]}) == 403
    for headers in ({"X-Api-Key": KEYS["viewer"]}, AS_USER):
        assert (ask(url, headers), ask(url, headers, move)) == (200, 403)
    assert requests.get(url, headers=AS_ADMIN, timeout=60).json()["now"] < before[:-10] + "59:59Z"
    for headers in (AS_ADMIN, {"Authorization": f"Bearer {ADMIN}"}):
        assert ask(url, headers, move) == 200


def test_the_other_port_moves_no_clock_either(stack_with_keys: Stack) -> None:
    """`/clock` of the local Cloud Tasks takes none of the stack's keys: `/dev/clock` does, and checks the role."""
    url, before = f"http://{stack_with_keys.emulator.address}/clock", stack_with_keys.emulator.clock.mode
    for headers in ({}, AS_USER, AS_ADMIN):
        assert (ask(url, headers, {"freeze": True}), ask(url, headers)) == (401, 401)
    assert stack_with_keys.emulator.clock.mode == before


@pytest.mark.parametrize(
    "key", ["", "x", "csk_admin_" + "A" * 43, "csk_admin_", "ä", "k" * 100_000, "a\r\nX-Evil: 1", "a.b.c"]
)
def test_what_is_no_key_opens_nothing(keyed: str, key: str) -> None:
    """A wrong, malformed, huge or foreign key is a 401 without a cookie, and is not repeated in the page."""
    _, response = sign_in(keyed, key)
    assert response.status_code == 401
    assert "Set-Cookie" not in response.headers
    assert len(key) < 3 or key not in response.text


def test_other_sites_neither_sign_in_nor_look(keyed: str) -> None:
    """A rebound name, a form of another site or of another port of this machine is refused, with a valid key, too."""
    session, _ = sign_in(keyed, ADMIN)
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        _, refused = sign_in(keyed, ADMIN, **headers)
        assert refused.status_code == 403
        assert session.post(f"{keyed}tasks/t/verbs/pause", headers=headers).status_code == 403
    assert session.get(f"{keyed}tasks", headers={"Host": "evil.example"}).status_code == 403
    _, rebound = sign_in(keyed, ADMIN, Host="evil.example", Origin="http://evil.example")
    assert rebound.status_code == 403


@pytest.mark.parametrize(
    "then",
    [
        "//evil.example",
        "https://evil.example",
        "/etc",
        "\\\\evil.example",
        "../../x",
        "java\tscript:1",
        "javascript:1",
        "a" * 9999,
    ],
)
def test_the_way_back_leads_nowhere_else(keyed: str, then: str) -> None:
    """Whatever the form says, the answer stays below the mount."""
    session, response = sign_in(keyed, ADMIN, then=then)
    assert follow(session, response) == keyed
