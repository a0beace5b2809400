"""What goes wrong between a success and the mail server: the mail arrives, and at most once more under the same id."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.people.senders.mail_server import MailServer, serve_mail

from cloudsched import App, Settings, Task
from cloudsched.domain.documents.person import PersonSpec
from cloudsched.domain.responses.api_responses import DeliveryReport
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.authority import OWN_CODE
from cloudsched.features.deliveries.option import Deliveries
from cloudsched.people.recipients import PeopleRecipients
from cloudsched.people.senders.channel_senders import Senders
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import Simulation

app = App(Settings())
MINUTE = timedelta(minutes=1)


app.handler("say")(lambda: "Water the plants")


@pytest.fixture
def server() -> Iterator[MailServer]:
    with serve_mail() as state:
        yield state


@pytest.fixture
def sim(server: MailServer) -> Iterator[Simulation]:
    """Mail really goes to the server, and to nobody else than the stored people."""
    with Simulation(app) as simulation:
        parts = app.container
        url = f"smtp://127.0.0.1:{server.port}"
        senders = Senders(Settings(smtp_url=url, mail_from="cloudsched@example.com"))
        recipients = PeopleRecipients(parts.store.records, parts.clock, lambda *_: None)
        PeopleWiring.of(parts).replace(senders=senders, recipients=recipients)
        yield simulation


def tell(sim: Simulation, owner: str = "ada") -> Task:
    contact = {"email": {"address": f"{owner}@example.com", "verified": True}}
    PeopleWiring.of(app.container).people.put(owner, PersonSpec.model_validate(contact), by=OWN_CODE)
    return app.create(owner=owner, title="Plants", handler="say", schedule=sim.now, delivery_channels=["EMAIL"])


def read_report(sim: Simulation, task: Task) -> DeliveryReport:
    (execution,) = sim.executions(task.id)
    (report,) = app.deliveries(task.id, execution.id)
    return report


def test_a_server_that_dies_after_data_gets_the_same_mail_again(sim: Simulation, server: MailServer) -> None:
    """Nobody knows whether it was taken, so that it is sent once more, with the same Message-ID, and then no more."""
    server.data_answer = "die"
    task = tell(sim)
    sim.advance(timedelta(seconds=3))
    assert read_report(sim, task).status == "RETRYING"
    server.data_answer = "250 OK"
    sim.advance(timedelta(days=4))
    assert [each["Message-ID"] for each in server.mails] == [read_report(sim, task).message_id] * 2
    assert (read_report(sim, task).status, read_report(sim, task).attempts) == ("SENT", 2)


def test_one_of_two_recipients_is_refused_alone(sim: Simulation, server: MailServer) -> None:
    """The other one has the mail; the server's words say why this one was not sent."""
    server.answers["eve@example.com"] = "550 5.1.1 no such user"
    good, bad = tell(sim, "ada"), tell(sim, "eve")
    sim.advance(MINUTE)
    assert server.recipients == [["ada@example.com"]]
    assert (read_report(sim, good).status, read_report(sim, bad).status) == ("SENT", "FAILED")
    assert "5.1.1" in str(read_report(sim, bad).reason)


def test_a_process_that_dies_before_it_records_sends_once_more_at_most(
    sim: Simulation, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the same Message-ID, by which receivers know it."""
    add, deaths = Deliveries.on_outcome, [1]

    def die(self: Deliveries, commit: Commit, *about: Any) -> Commit:
        if deaths and commit.task.delivery is not None:
            deaths.pop()
            raise RuntimeError("it dies")
        return add(self, commit, *about)

    monkeypatch.setattr(Deliveries, "on_outcome", die)
    task = tell(sim)
    with pytest.raises(RuntimeError, match="it dies"):
        sim.advance(timedelta(seconds=3))
    assert len(server.mails) == 1
    sim.advance(timedelta(days=4))
    assert read_report(sim, task).status == "SENT"
    assert [each["Message-ID"] for each in server.mails] == [read_report(sim, task).message_id] * 2
