"""What the tests of the client share: a request, and a network that loses answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cloudsched.errors import CloudschedError
from cloudsched.web.functions import serve_api

if TYPE_CHECKING:
    from collections.abc import Callable

    from werkzeug.wrappers import Request, Response

    from cloudsched.testing import Simulation

GREET: dict[str, Any] = {"owner": "ada", "title": "Greet", "handler": "greet", "payload": {"name": "Ada"}}
DAILY = {"rrule": "FREQ=DAILY", "dtstart": "2027-01-01T09:00:00"}


class Flaky:
    """Stands before an API, and may fail for it; keeps what was asked for."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.asked: list[Request] = []
        self.fails: list[Callable[[], Response]] = []
        """How the next requests are answered instead."""
        self.loses = False
        """Whether what is answered instead was done all the same."""

    def __call__(self, request: Request) -> Response:
        self.asked.append(request)
        if not self.fails:
            return serve_api(self.sim.app, request)
        if self.loses:
            serve_api(self.sim.app, request)
        return self.fails.pop(0)()


def catch_error(call: Callable[[], object]) -> CloudschedError:
    """Return the error that a call raises, which must be one of the library's."""
    with pytest.raises(CloudschedError) as caught:
        call()
    return caught.value
