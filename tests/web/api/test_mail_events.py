"""What a mail provider reports reaches the delivery and the person; what anybody else says reaches nothing."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.authorities import A_USER
from tests.harness import LocalClient
from werkzeug.wrappers import Request

from cloudsched import App, Settings
from cloudsched.domain.documents.delivery import MailEvent
from cloudsched.domain.documents.person import PersonSpec
from cloudsched.engine.ports.authority import OWN_CODE
from cloudsched.testing import Simulation
from cloudsched.web.functions import serve_links

if TYPE_CHECKING:
    from collections.abc import Iterator

    from werkzeug.test import TestResponse

    from cloudsched.engine.ports.sender import Message, Recipient

app = App(Settings())
SECRET = "a password of a provider"  # noqa: S105 - a test's
ADA = "ada@example.com"


@app.handler("say")
def say() -> str:
    """Return the text of a mail."""
    return "water them"


@pytest.fixture
def sim() -> Iterator[Simulation]:
    """A simulation with a person who has an address."""
    with Simulation(app, mail_events_secret=SECRET) as simulation:
        put()
        yield simulation


def put(address: str = ADA, *, verified: bool = True, **more: Any) -> None:
    fields = {"email": {"address": address, "verified": verified}, **more}
    app.container.people.put("ada", PersonSpec.model_validate(fields), by=OWN_CODE)


def send(sim: Simulation) -> str:
    """Send a mail, and return its Message-ID as a mail server writes it."""
    app.run_now("say", owner="ada", delivery_channels=["EMAIL"])
    sim.advance(timedelta(minutes=1))
    return f"<{sim.sent('EMAIL')[-1].message.id}@example.com>"


def post(*events: dict[str, Any], password: str | None = SECRET, query: str = "", body: object = None) -> TestResponse:
    """Post to the public function, as a provider does."""
    client = LocalClient(Request.application(lambda request: serve_links(app, request)))
    headers = {}
    if password is not None:
        headers["Authorization"] = f"Basic {base64.b64encode(f'any:{password}'.encode()).decode()}"
    return client.post(f"/v1/mail-events{query}", json=body or {"events": list(events)}, headers=headers)


def statuses(sim: Simulation) -> list[str]:
    """Return the statuses of all mails, by task."""
    tasks = app.tasks().items
    return [
        str(each.status)
        for task in tasks
        for run in sim.executions(task.id)
        for each in app.deliveries(task.id, run.id)
    ]


def problem() -> tuple[bool | None, str | None]:
    """Return whether Ada's address is verified, and what is wrong with it."""
    email = app.container.people.get("ada").email
    assert email is not None
    return email.verified, email.problem


@pytest.mark.parametrize("kind", ["BOUNCED", "COMPLAINED"])
def test_a_bounce_or_a_complaint_ends_mail_to_the_address(sim: Simulation, kind: str) -> None:
    """It shows in the delivery and in the person's contacts; the next mail is suppressed until it is verified again."""
    message_id = send(sim)
    reported = post({"type": kind, "messageId": message_id, "address": "ADA@example.com", "reason": "550 no such user"})
    assert (reported.status_code, reported.get_json()) == (200, {"recorded": 1})
    (task,) = app.tasks().items
    (report,) = app.deliveries(task.id, sim.executions(task.id)[0].id)
    assert (report.status, report.reason) == (kind, "550 no such user")
    assert problem() == (False, kind)
    send(sim)
    assert len(sim.sent("EMAIL")) == 1
    assert sorted(statuses(sim)) == sorted([kind, "SUPPRESSED"])
    assert app.container.people.verify_address("ada", ADA)
    send(sim)
    assert len(sim.sent("EMAIL")) == 2


def test_a_person_cannot_take_the_problem_back_by_writing_it(sim: Simulation) -> None:
    """Only verifying does; what is written of it counts for nothing, neither to remove nor to make one."""
    post({"type": "BOUNCED", "messageId": send(sim), "address": ADA})
    spec = PersonSpec.model_validate({"email": {"address": ADA}})
    assert app.container.people.put("ada", spec, by=A_USER).person.email == app.container.people.get("ada").email
    app.container.people.put("ada", spec, proven_address=ADA, by=A_USER)
    assert problem() == (False, "BOUNCED")
    claimed = PersonSpec.model_validate({"email": {"address": "b@example.com", "problem": "BOUNCED"}})
    assert app.container.people.put("bob", claimed, by=A_USER).person.email is not None
    assert getattr(app.container.people.get("bob").email, "problem", "?") is None


def test_another_address_has_no_problem_yet(sim: Simulation) -> None:
    """What is wrong is wrong with an address, however it is written."""
    post({"type": "BOUNCED", "messageId": send(sim), "address": ADA})
    for address, found in ((ADA.upper(), "BOUNCED"), ("new@example.com", None)):
        put(address, verified=False)
        assert problem() == (False, found)


def test_reports_that_come_twice_or_late_undo_nothing(sim: Simulation) -> None:
    """Worse stays; and an address that was verified since is not rejected by the same report again."""
    bounce = {"type": "BOUNCED", "messageId": send(sim), "address": ADA}
    delivered = {**bounce, "type": "DELIVERED"}
    post(delivered)
    assert statuses(sim) == ["DELIVERED"]
    post(bounce, bounce)
    post(delivered)
    assert statuses(sim) == ["BOUNCED"]
    put()
    assert problem() == (True, None)
    assert post(bounce).status_code == 200
    assert problem() == (True, None)
    post({**bounce, "type": "COMPLAINED"})
    assert (statuses(sim), problem()) == (["COMPLAINED"], (False, "COMPLAINED"))


@pytest.mark.parametrize("password", [None, "", "wrong", SECRET[:-1], f"{SECRET} "])
def test_nobody_else_reports(sim: Simulation, password: str | None) -> None:
    """Without the password there is 401, and nothing is read or changed."""
    event = {"type": "BOUNCED", "messageId": send(sim), "address": ADA}
    before = sim.counts.copy()
    assert post(event, password=password).status_code == 401
    assert sim.counts == before
    assert (statuses(sim), problem()) == (["SENT"], (True, None))


def test_without_a_password_of_the_operators_nothing_is_taken() -> None:
    """An empty one is none."""
    with Simulation(app):
        for password in ("", "None", "x" * 20):
            assert post({"type": "BOUNCED", "messageId": "m"}, password=password).status_code == 403


def test_a_message_id_that_was_guessed_reaches_nothing(sim: Simulation) -> None:
    """The delivery's id, which its owner may know, is not enough; other channels and other tasks have no mails."""
    message_id = send(sim)
    delivery_id = message_id[1:33]
    other = delivery_id + "".join(sorted(message_id[33:65]))
    plain = app.create(id="d" + "0" * 31, owner="ada", title="T", handler="say")
    for forged in (delivery_id, f"{delivery_id}_x", f"{plain.id}_x", other, "<>", "x" * 900, "\u00e9"):
        assert post({"type": "BOUNCED", "messageId": forged, "address": ADA}).get_json() == {"recorded": 0}
    assert (statuses(sim), problem()) == (["SENT"], (True, None))


def test_a_report_about_another_address_ends_nothing(sim: Simulation) -> None:
    """The person has changed it since; nor does a bounce that is not permanent, or names no address."""
    put("new@example.com")
    message_id = send(sim)
    post({"type": "BOUNCED", "messageId": message_id, "address": ADA})
    assert (statuses(sim), problem()) == (["BOUNCED"], (True, None))
    post({"type": "BOUNCED", "messageId": send(sim), "address": "new@example.com", "isPermanent": False})
    post({"type": "BOUNCED", "messageId": send(sim)})
    assert (statuses(sim), problem()) == (["BOUNCED"] * 3, (True, None))


def test_a_report_costs_two_reads_and_two_documents_at_most(sim: Simulation) -> None:
    """One that arrives costs two reads and one document, a bounce the person's besides."""
    message_id = send(sim)
    before = sim.counts.copy()
    post({"type": "DELIVERED", "messageId": message_id, "address": ADA})
    found = sim.counts.since(before)
    assert (found.reads, found.writes, found.dispatches) == (2, 1, 0)
    before = sim.counts.copy()
    post({"type": "BOUNCED", "messageId": message_id, "address": ADA})
    found = sim.counts.since(before)
    assert (found.reads, found.writes, found.dispatches) == (3, 2, 0)


def test_a_providers_own_form_is_read(sim: Simulation, caplog: pytest.LogCaptureFixture) -> None:
    """With `?provider=`; what is none of its forms is 400, and SNS's question is for the operator."""
    event = {"event": "spamreport", "smtp-id": send(sim), "email": ADA}
    assert post(query="?provider=sendgrid", body=[event]).get_json() == {"recorded": 1}
    assert statuses(sim) == ["COMPLAINED"]
    assert post(query="?provider=mailgun", body=[event]).status_code == 400
    assert post(query="?provider=pigeon", body=[event]).status_code == 400
    assert post(body=[event]).status_code == 400
    url = "https://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription"
    assert post(query="?provider=ses", body={"SubscribeURL": url}).status_code == 200
    assert url in caplog.text


def test_a_report_that_comes_before_the_mail_is_recorded_as_sent_is_kept(sim: Simulation) -> None:
    """Providers are fast: the delivery is still being sent, and ends as if nothing had come in between."""
    sender = sim.channel("EMAIL")
    send_mail = sender.send

    def send_and_report(message: Message, recipient: Recipient) -> str:
        name = send_mail(message, recipient)
        event = MailEvent.model_validate({"type": "BOUNCED", "messageId": message.id, "address": recipient.address})
        assert app.container.mail_events.record(event)
        return name

    sender.send = send_and_report  # type: ignore[method-assign]
    send(sim)
    assert (statuses(sim), problem()) == (["BOUNCED"], (False, "BOUNCED"))
    (task,) = app.tasks().items
    assert [each.is_delivered for each in sim.executions(task.id)] == [True]
