"""The page at ``/`` of the local stack leads on, in a browser and in a terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import requests
from tests.harness import request

from cloudsched.local.stack import run_stack

if TYPE_CHECKING:
    from cloudsched import App


def test_every_link_of_the_page_answers(app: App) -> None:
    """As HTML for browsers and as text for curl; no link is dead; other paths stay the API's."""
    with run_stack(app, store="sqlite") as stack:
        text = requests.get(stack.url + "/", timeout=60)
        assert text.headers["Content-Type"].startswith("text/plain")
        page = requests.get(stack.url + "/", headers={"Accept": "text/html,*/*;q=0.8"}, timeout=60)
        assert page.headers["Content-Type"].startswith("text/html")
        links = re.findall(r'href="([^"]+)"', page.text)
        assert links == re.findall(r"http://\S+", text.text)
        assert len(links) == 6
        for link in links:
            assert requests.get(link, timeout=60).status_code == 200, link
        assert requests.get(stack.url + "/nothing", timeout=60).status_code == 404
        assert requests.get(stack.url + "/", headers={"Host": "evil.example"}, timeout=60).status_code == 403
        assert requests.post(stack.url + "/", timeout=60).status_code in {404, 405}


def test_health_shows_the_circuits_of_the_stack(app: App) -> None:
    """Those of the parts that the stack opened; the app that serves has them from there."""
    with run_stack(app, store="sqlite") as stack:
        assert request(stack.url, "GET", "/healthz").body["circuits"] == {"queue": "closed"}
