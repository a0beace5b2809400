"""The dashboard over a simulation's API, as it is for each role."""

from __future__ import annotations

import csv
import html
import io
import re
from contextlib import ExitStack

from werkzeug.test import Client as Browser
from werkzeug.test import TestResponse
from werkzeug.wrappers import Request

from cloudsched.client import Client
from cloudsched.dashboard.application import Dashboard
from cloudsched.dashboard.times import BLANK
from cloudsched.local.wsgi_server import WebServer
from cloudsched.testing import Simulation
from cloudsched.web.functions import serve_api

ORIGIN = {"base_url": "http://localhost", "headers": {"Origin": "http://localhost"}}


class Pages:
    """The dashboard with one key for each role, and a task of Ada's."""

    def __init__(self, sim: Simulation, keys: dict[str, str], parts: ExitStack) -> None:
        self.sim, self.app = sim, sim.app
        self.keys = keys
        server = parts.enter_context(WebServer(Request.application(lambda request: serve_api(sim.app, request))))
        server.serve()
        self._browsers = {
            who: Browser(Dashboard(parts.enter_context(Client(f"http://{server.address}", key=key)), place="a test"))
            for who, key in keys.items()
        }

    def get(self, who: str, path: str) -> TestResponse:
        return self._browsers[who].get(path, base_url="http://localhost")

    def read(self, path: str, who: str = "admin") -> str:
        return self.get(who, path).text

    def rows(self, path: str, who: str = "admin") -> list[dict[str, str]]:
        """Return all rows of a list, such as ``/tasks?owner=ada``, from its file."""
        found = [*csv.DictReader(io.StringIO(self._open(re.sub(r"\?|$", ".csv?", path, count=1), who)))]
        assert not any(cell.startswith("ERROR") for row in found for cell in row.values() if cell)
        return found

    def words(self, path: str, who: str = "admin") -> str:
        """Return a page as people read it, without its escapes, with plain blanks."""
        return html.unescape(self._open(path, who))

    def text(self, path: str, who: str = "admin") -> str:
        """Return the words of a page alone."""
        return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", self._open(path, who))))

    def _open(self, path: str, who: str) -> str:
        page = self.get(who, path)
        assert page.status_code == 200, page.text
        return page.text.replace(BLANK, " ")

    def forget(self) -> None:
        """Let the next page look anew at what is counted and at its causes."""
        self.app.container.many_tasks.overview.forget()
        self.app.container.forget_causes()

    def post(self, who: str, path: str, form: dict[str, str]) -> TestResponse:
        return self._browsers[who].post(path, data=form, **ORIGIN)
