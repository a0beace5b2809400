"""A delivery that was not sent is sent again once, perhaps to the right address, by whoever may say what is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from tests.web.callers import DAY, HOUR, MINUTE, PEOPLE, SECOND, Answer, RoleHarness, make_keys

from cloudsched import App, Settings
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.errors import NotAllowed
from cloudsched.testing import Simulation
from cloudsched.web.auth.roles import ON_BEHALF_OF, Role

app = App(Settings())
app.handler("remind", access="users")(lambda: "Water the plants")


@app.handler("break", access="users")
def break_down() -> None:
    raise ValueError("secret of the database")


@pytest.fixture
def roles(simulate: Callable[..., Simulation]) -> RoleHarness:
    """Dora's address is wrong and not verified; all others have rights of their own."""
    keys, access = make_keys({**PEOPLE, "dora": (Role.USER, "dora"), "eve": (Role.USER, "eve")}, max_active_tasks=1)
    sim = simulate(access=access)
    sim.add_person("dora", email={"address": "wrong@example.com"})
    return RoleHarness(sim, keys)


def make(roles: RoleHarness, handler: str = "remind", channels: tuple[str, ...] = ("EMAIL",), **more: Any) -> str:
    """Return the id of dora's task, whose deliveries have ended one way or the other."""
    due = {"at": (roles.sim.now + SECOND).isoformat()}
    body = {"title": "Plants", "handler": handler, "schedule": due, "deliveryChannels": list(channels), **more}
    created = roles.create_task("dora", body)
    assert created.status_code == 201, created.text
    roles.sim.advance(5 * MINUTE)
    return str(created.json["id"])


def find(roles: RoleHarness, channel: str = "EMAIL") -> dict[str, Any]:
    (delivery,) = roles.fetch("dora", f"/v1/deliveries?channel={channel}")["deliveries"]
    found: dict[str, Any] = delivery
    return found


def resend(roles: RoleHarness, who: str | None = "admin", delivery: str = "", key: str = "", **body: Any) -> Answer:
    headers = {"Idempotency-Key": key} if key else {}
    path = f"/v1/deliveries/{delivery or find(roles)['id']}/resend"
    answer = roles.ask(who, "POST", path, body, **headers)
    roles.sim.advance(5 * SECOND)
    return answer


def read_address(roles: RoleHarness) -> Any:  # noqa: ANN401 - JSON
    return roles.fetch("admin", "/v1/people/dora").get("email")


def list_mails(roles: RoleHarness) -> list[str]:
    return [each.address for each in roles.sim.channel("EMAIL").sent]


WRONG = {"address": "wrong@example.com", "verified": False}


def test_a_wrong_address_is_corrected_and_the_mail_arrives_once(roles: RoleHarness) -> None:
    """Nothing says any more that it did not: neither the run, nor the list of what reached nobody.

    A second address within a minute is refused: whoever tries one after the other sends no more than a mail a minute.
    """
    task_id = make(roles)
    unsent = find(roles)
    assert unsent["status"] == "SUPPRESSED"
    assert unsent.keys() >= {"createdAt", "lastAttemptAt"}
    (listed,) = roles.fetch("admin", "/v1/deliveries?unreached=true")["deliveries"]
    assert listed == unsent
    answer = resend(roles, address="dora@example.com", key="a")
    assert answer.status_code == 200, answer.text
    assert answer.json["status"] == "RETRYING"
    assert resend(roles, delivery=unsent["id"], address="b@example.com").status_code == 409
    assert list_mails(roles) == ["dora@example.com"]
    assert read_address(roles) == {"address": "dora@example.com", "verified": True}
    sent = find(roles)
    assert (sent["status"], sent["id"]) == ("SENT", unsent["id"])
    assert sent["createdAt"] == unsent["createdAt"] < sent["lastAttemptAt"] <= sent["sentAt"]
    assert roles.fetch("admin", "/v1/deliveries?unreached=true")["deliveries"] == []
    (run,) = roles.sim.executions(task_id)
    assert run.is_delivered
    assert "Not delivered" not in (run.message or "")
    assert resend(roles, address="dora@example.com", key="a").status_code == 200  # the same request, told again
    roles.sim.advance(5 * DAY)
    assert list_mails(roles) == ["dora@example.com"]


@pytest.mark.parametrize("key", ["", "form"])
def test_two_clicks_send_one_mail(roles: RoleHarness, key: str) -> None:
    """Also if the first has not been carried out yet. With its key, the second has the answer of the first."""
    make(roles)
    body = {"address": "dora@example.com"}
    headers = {"Idempotency-Key": key} if key else {}
    path = f"/v1/deliveries/{find(roles)['id']}/resend"
    roles.sim.channel("EMAIL").fails(1)
    assert roles.ask("admin", "POST", path, body, **headers).status_code == 200
    assert roles.ask("admin", "POST", path, body, **headers).status_code == (200 if key else 409)
    roles.sim.advance(2 * DAY)
    assert list_mails(roles) == ["dora@example.com"]
    assert find(roles)["attempts"] == 3  # one that could reach nobody, one that failed, one that arrived


def test_what_was_sent_is_not_sent_again(roles: RoleHarness) -> None:
    """It is refused, and the address stays: of the two, none is done."""
    roles.sim.app.update_person("dora", email={"address": "dora@example.com", "verified": True})
    make(roles)
    answer = resend(roles, address="other@example.com")
    assert answer.status_code == 409
    assert "sent" in answer.json["detail"]
    assert read_address(roles)["address"] == "dora@example.com"
    assert list_mails(roles) == ["dora@example.com"]


def test_what_is_still_tried_is_left_alone(roles: RoleHarness) -> None:
    """Two would send it at once otherwise. It is tried again by itself."""
    roles.sim.app.update_person("dora", email={"address": "dora@example.com", "verified": True})
    roles.sim.channel("EMAIL").is_down = True
    make(roles)
    waiting = find(roles)
    assert waiting["nextAttemptAt"] > waiting["lastAttemptAt"] > waiting["createdAt"]
    assert resend(roles, address="other@example.com").status_code == 409
    assert read_address(roles)["address"] == "dora@example.com"
    roles.sim.channel("EMAIL").is_down = False
    roles.sim.advance(DAY)
    assert list_mails(roles) == ["dora@example.com"]
    assert roles.fetch("admin", "/v1/deliveries")["deliveries"] == []


def test_what_was_given_up_after_all_its_tries_is_sent_again(roles: RoleHarness) -> None:
    """One more attempt: if that fails too, it has failed again, and the record says so again once."""
    roles.sim.app.update_person("dora", email={"address": "dora@example.com", "verified": True})
    roles.sim.channel("EMAIL").is_down = True
    task_id = make(roles)
    roles.sim.advance(8 * DAY)
    gave_up = find(roles)
    assert (gave_up["status"], gave_up["attempts"]) == ("FAILED", 10)
    assert resend(roles).status_code == 200
    roles.sim.advance(2 * DAY)
    assert (find(roles)["status"], find(roles)["attempts"]) == ("FAILED", 11)
    (run,) = roles.sim.executions(task_id)
    assert str(run.message).count("Not delivered by EMAIL") == 1
    roles.sim.channel("EMAIL").is_down = False
    (failed,) = roles.sim.app.deliveries_of(channel="EMAIL", since=run.scheduled_for, until=roles.sim.now)
    assert roles.sim.app.resend(failed.id).status == "RETRYING"
    roles.sim.advance(MINUTE)
    with pytest.raises(NotAllowed):
        roles.sim.app.resend(failed.id, "other@example.com")
    assert list_mails(roles) == ["dora@example.com"]
    (run,) = roles.sim.executions(task_id)
    assert "Not delivered" not in str(run.message)
    assert roles.fetch("admin", "/v1/deliveries")["deliveries"] == []


@pytest.mark.parametrize(
    ("who", "status"),
    [("eve", 404), ("bob", 404), ("worker", 403), ("viewer", 403), ("reader", 403), ("dora", 403), (None, 401)],
)
def test_nobody_else_corrects_an_address(roles: RoleHarness, who: str | None, status: int) -> None:
    """The person neither, for an address that nothing proves to be theirs. Nothing is sent or changed."""
    make(roles)
    before = find(roles)
    answer = resend(roles, who, before["id"], address="eve@example.com")
    assert answer.status_code == status
    assert (read_address(roles), find(roles)) == (WRONG, before)
    assert list_mails(roles) == []


def test_a_server_that_acts_for_a_person_has_their_rights(roles: RoleHarness) -> None:
    """As a server for itself, an admin may say whose an address is. What is not for a person is an admin's alone."""
    make(roles)
    path = f"/v1/deliveries/{find(roles)['id']}/resend"
    body = {"address": "eve@example.com"}
    assert roles.ask("admin", "POST", path, body, **{ON_BEHALF_OF: "dora"}).status_code == 403
    assert roles.ask("admin", "POST", path, body, **{ON_BEHALF_OF: "bob"}).status_code == 404
    roles.sim.channel("OPERATOR").is_down = True
    roles.sim.app.create(owner="dora", handler="remind", delivery_channels=["OPERATOR"])
    roles.sim.advance(8 * DAY)
    delivery = find(roles, "OPERATOR")["id"]
    roles.sim.channel("OPERATOR").is_down = False
    assert resend(roles, "dora", delivery).status_code == 403
    assert resend(roles, "admin", delivery).status_code == 200
    assert len(roles.sim.channel("OPERATOR").sent) == 1


def test_of_two_at_once_one_is_sent_and_stored(roles: RoleHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has found it unsent, and decided. Whoever is refused changes no address, and is named in no note."""
    make(roles)
    path = f"/v1/deliveries/{find(roles)['id']}/resend"
    store = roles.sim.app.container.store
    commit, waiting, done, told = store.commit, list[Commit](), list[VersionedTask](), list[int]()

    def commit_late(asked: Commit) -> VersionedTask:
        """Commit what was decided first once the second has decided."""
        if asked.task.delivery is None:
            return commit(asked)
        if not waiting:
            waiting.append(asked)
            told.append(roles.ask("admin", "POST", path, {"address": "late@example.com"}).status_code)
            return done[0]
        if not done:
            monkeypatch.setattr(store, "commit", commit)
            done.append(commit(waiting[0]))
        return commit(asked)

    monkeypatch.setattr(store, "commit", commit_late)
    told.append(roles.ask("admin", "POST", path, {"address": "dora@example.com"}).status_code)
    roles.sim.advance(DAY)
    assert told == [409, 200]
    assert list_mails(roles) == ["dora@example.com"]
    assert read_address(roles) == {"address": "dora@example.com", "verified": True}
    roles.sim.app.update_person("dora", email={"address": "new@example.com", "verified": True})
    roles.sim.app.put_person("eve", email={"address": "eve@example.com", "verified": True})
    entries = roles.fetch("admin", "/v1/audit?action=CONTACT_VERIFIED")["entries"]
    fields = [each for entry in entries for each in entry["fields"] if each["field"] == "email"]
    assert [(each.get("before"), each["after"]) for each in fields[:3]] == [
        (None, "eve@example.com"),
        ("dora@example.com", "new@example.com"),
        ("wrong@example.com (not verified)", "dora@example.com"),
    ]


def test_a_person_sends_their_own_again_once_it_can_reach_them(roles: RoleHarness) -> None:
    """Without counting as one of their tasks. Before, it is refused with the reason, and not tried."""
    make(roles)
    before = find(roles)
    refused = resend(roles, "dora")
    assert refused.status_code == 409
    assert "No verified e-mail address" in refused.json["detail"]
    assert find(roles) == before
    roles.sim.app.update_person("dora", email={"address": "dora@example.com", "verified": True})
    roles.create_task("dora", {"handler": "remind", "schedule": {"at": "2027-06-01T09:00Z"}})
    assert resend(roles, "dora").status_code == 200
    assert list_mails(roles) == ["dora@example.com"]


def test_what_a_person_switched_off_stays_off(roles: RoleHarness) -> None:
    """By category as well: no address changes that.

    One who was deleted, or never stored, is stored with a right address, by those who may say whose it is.
    """
    make(roles)
    delivery = find(roles)["id"]
    roles.sim.app.update_person("dora", channels={"OTHERS": ["WEB"]})
    answer = resend(roles, delivery=delivery, address="dora@example.com")
    assert answer.status_code == 409
    assert "Not wanted" in answer.json["detail"]
    assert read_address(roles) == WRONG
    roles.sim.app.delete_person("dora")
    assert resend(roles, delivery=delivery).status_code == 409
    refused = resend(roles, "dora", delivery, address="dora@example.com")
    assert refused.status_code == 403
    assert "Only an admin" in refused.text
    assert roles.ask("admin", "GET", "/v1/people/dora").status_code == 404
    assert list_mails(roles) == []
    assert resend(roles, delivery=delivery, address="dora@example.com").status_code == 200
    assert read_address(roles) == {"address": "dora@example.com", "verified": True}
    assert list_mails(roles) == ["dora@example.com"]


@pytest.mark.parametrize(
    "address", ["", "dora", "a@b\r\nBcc: all@example.com", "\u202edora@example.com", f"{'x' * 300}@e.org"]
)
def test_an_address_that_is_none_changes_nothing(roles: RoleHarness, address: str) -> None:
    """It is refused as everywhere, before anything is sent."""
    make(roles)
    before = find(roles)
    assert resend(roles, address=address).status_code in {400, 422}
    assert (read_address(roles), find(roles)) == (WRONG, before)


def test_other_contacts_are_confirmed_before(roles: RoleHarness) -> None:
    """A webhook has a secret to hand over, and is asked. So an address is refused, and the hint says the way."""
    roles.sim.app.update_person("dora", webhook={"url": "https://example.com/new"})
    make(roles, channels=("WEBHOOK",))
    delivery = find(roles, "WEBHOOK")["id"]
    refused = resend(roles, delivery=delivery, address="https://evil.example/hook")
    assert refused.status_code in {400, 422}
    assert "PATCH" in refused.text
    assert resend(roles, "dora", delivery).status_code == 409
    roles.sim.app.update_person("dora", webhook={"url": "https://example.com/new", "verified": True})
    assert resend(roles, "dora", delivery).status_code == 200
    assert len(roles.sim.channel("WEBHOOK").sent) == 1


def test_a_failure_is_told_once_by_each_channel(roles: RoleHarness) -> None:
    """Sending its mail again tells nobody a second time, and the mail has no text of the error."""
    task_id = make(roles, "break", ("EMAIL", "MOBILE"))
    assert resend(roles, address="dora@example.com").status_code == 200
    roles.sim.advance(5 * DAY)
    (mail,) = roles.sim.channel("EMAIL").sent
    assert "secret" not in mail.body
    assert len(roles.sim.channel("MOBILE").sent) == 1
    assert len(roles.sim.inbox("dora")) == 1
    (run,) = roles.sim.executions(task_id)
    told = roles.fetch("dora", f"/v1/tasks/{task_id}/executions/{run.id}/deliveries")
    assert {(each["channel"], each["status"], each["owner"]) for each in told["deliveries"]} == {
        ("EMAIL", "SENT", "dora"),
        ("MOBILE", "SENT", "dora"),
        ("WEB", "SENT", "dora"),
    }
    assert all(each["isFailure"] and each["sentAt"] for each in told["deliveries"])
    assert "untold" not in told


def list_pages(roles: RoleHarness, who: str, query: str, size: int = 500) -> list[dict[str, Any]]:
    """Return what the pages of a list have together."""
    found, token = list[dict[str, Any]](), ""
    while token is not None:
        page = roles.fetch(who, f"/v1/deliveries?{query}&pageSize={size}&pageToken={token}")
        assert len(page["deliveries"]) <= size
        found += page["deliveries"]
        token = page.get("nextPageToken")
    return found


def test_lists_of_deliveries_are_filtered_and_leave_nothing_out(roles: RoleHarness) -> None:
    """By channel and by time: what the pages of a filter have together is what the whole list has of it.

    That of all people has whatever reached nobody: failed, tried again or without a usable address.
    """
    roles.sim.channel("MOBILE").is_down = True
    for _ in range(3):
        make(roles, channels=("EMAIL", "MOBILE", "WEBHOOK"))
        roles.sim.advance(HOUR)
    roles.sim.advance(8 * DAY)
    make(roles, channels=("EMAIL", "MOBILE", "WEBHOOK"))
    whole = list_pages(roles, "dora", "")
    assert len(whole) == 12
    for channel in ("EMAIL", "MOBILE", "WEBHOOK", "SLACK"):
        assert list_pages(roles, "dora", f"channel={channel}", 2) == [
            each for each in whole if each["channel"] == channel
        ]
    since, until = whole[5]["createdAt"], whole[0]["createdAt"]
    some = list_pages(roles, "dora", f"from={quote(since)}&until={quote(until)}")
    assert some == [each for each in whole if since <= each["createdAt"] < until]
    assert roles.ask("dora", "GET", "/v1/deliveries?channel=PIGEON").status_code in {400, 422}
    unsent = list_pages(roles, "admin", "")
    assert {each["status"] for each in unsent} == {"SUPPRESSED", "FAILED", "RETRYING"}
    assert {each["id"] for each in unsent} == {each["id"] for each in whole if each["status"] != "SENT"}
    assert all(list_pages(roles, "admin", "", size) == unsent for size in (1, 2, 5))
