"""What an attempt in a function had in its variables is freed when it ends, and needs no search for garbage."""

from __future__ import annotations

from tests import held_frames
from tests.held_frames import DURABLE, PLAIN
from tests.web.callers import SECOND, open_api

from cloudsched import App, Schedule
from cloudsched.domain.transitions.claim import DeliveryAction, DeliveryResult
from cloudsched.testing import Simulation
from cloudsched.web.functions import TOKEN_HEADER, serve_execute


def test_an_attempt_that_has_ended_holds_nothing() -> None:
    """Failed, suspended, cancelled or put off: what was delivered to `execute` is answered, and nothing is kept."""
    app, handlers = App(), PLAIN | DURABLE
    held_frames.register(app, handlers)
    client = open_api(app, serve_execute)

    def deliver(body: bytes, token: str) -> DeliveryResult:
        return DeliveryResult(
            DeliveryAction(client.post("/", data=body, headers={TOKEN_HEADER: token}).get_json()["action"]), ""
        )

    with Simulation(app) as sim, held_frames.watch():
        sim.queue.deliver = deliver
        for name in handlers:
            app.create(id=name, handler=name, schedule=Schedule.once(sim.now))
        sim.advance(SECOND)
        assert held_frames.count_made() >= len(handlers), "all have run"
        assert held_frames.count_held() == 0
