"""A question is stored with the deliveries that carry it, and a tap answers it once, whatever the store is."""

from __future__ import annotations

from tests.engine.harness import DAY, MINUTE
from werkzeug.test import Client
from werkzeug.wrappers import Request

from cloudsched import App, Context
from cloudsched.engine.ports.store import Store
from cloudsched.testing import Simulation
from cloudsched.web.functions import serve_links

ROOT = "https://api.example"


def test_the_first_tap_answers_a_question_that_was_mailed(store: Store) -> None:
    app = App()

    @app.handler("ask")
    def ask(ctx: Context) -> object:
        return ctx.wait_for(
            "decision", timeout=DAY, by=("user:bob",), question="Shall I?", channels=["EMAIL", "MOBILE"]
        )

    with Simulation(app, store=store, public_url=ROOT) as sim:
        sim.add_person("bob")
        task = app.create(owner="ada", handler="ask")
        sim.advance(MINUTE)
        assert [len(sim.sent(each, to="bob")) for each in ("EMAIL", "MOBILE")] == [1, 1]
        path = str(sim.sent("EMAIL")[0].message.answer_url).removeprefix(ROOT)
        assert app.inbox("bob").items[0].answer_url == ROOT + path
        client = Client(Request.application(lambda request: serve_links(app, request)))
        assert "Approve" in client.get(path).text
        told = [client.post(path, data={"decision": each}).text for each in ("approve", "reject")]
        sim.advance(MINUTE)
        assert ["Approved" in each for each in (*told, client.get(path).text)] == [True] * 3
        (run,) = sim.executions(task.id)
        assert (run.content, run.is_delivered) == ({"approved": True}, False)
        assert [each.is_read for each in sim.inbox("bob")] == [True]
