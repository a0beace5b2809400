"""Read marks and the count of unread messages over HTTP, and on the command line."""

from __future__ import annotations

import pytest
from tests.conftest import NOW
from tests.web.callers import RoleHarness

from cloudsched.domain.documents.execution import Message
from cloudsched.domain.transitions.commit import Commit
from cloudsched.testing import Simulation


@pytest.fixture
def message(roles: RoleHarness) -> Message:
    """A message in Ada's inbox, beside another one."""
    sim: Simulation = roles.sim
    stored = sim.app.container.store.load(roles.task("ada"))
    assert stored is not None
    made = [
        Message(id=key, owner="ada", task_id=stored.task.id, execution_id="e", title=key, body="", created_at=NOW)
        for key in ("m1", "m2")
    ]
    sim.app.container.store.commit(Commit(stored.task, stored, (), made))
    return made[0]


def unread(roles: RoleHarness, who: str = "ada") -> int:
    return int(roles.ask(who, "GET", "/v1/inboxes/ada/unread").get_json()["unread"])


def test_reading_a_message_marks_it_once(roles: RoleHarness, message: Message) -> None:
    """The mark is the first time; the list has it, and the count goes down by one."""
    assert unread(roles) == 2
    path = f"/v1/inboxes/ada/messages/{message.id}/read"
    first = roles.ask("ada", "POST", path)
    assert (first.status_code, first.get_json()["isRead"]) == (200, True)
    assert roles.ask("ada", "POST", path).get_json() == first.get_json()
    listed = {each["id"]: each for each in roles.ask("ada", "GET", "/v1/inboxes/ada/messages").get_json()["messages"]}
    assert listed["m1"]["readAt"] == first.get_json()["readAt"]
    assert "readAt" not in listed["m2"]
    assert unread(roles) == unread(roles, "admin") == 1
