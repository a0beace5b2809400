"""Which execution may take an event."""

from __future__ import annotations

import pytest

from cloudsched.domain.documents.authority import EventSender, SenderRole
from cloudsched.domain.documents.task import Event
from cloudsched.testing import START


@pytest.mark.parametrize(
    ("name", "execution_id", "roles", "is_for"),
    [
        ("go", None, {SenderRole.OWNER}, True),
        ("go", "mine", {SenderRole.OWNER, SenderRole.ADMIN}, True),
        ("go", "another", {SenderRole.OWNER}, False),
        ("stop", None, {SenderRole.OWNER}, False),
        ("go", None, {SenderRole.ADMIN}, False),
        ("go", "mine", set(), False),
    ],
)
def test_an_event_is_for_those_who_wait_for_its_name_and_sender(
    name: str, execution_id: str | None, roles: set[SenderRole], *, is_for: bool
) -> None:
    """And, if it names an execution, for that one only."""
    sender = EventSender(role=SenderRole.OWNER, subject="ada")
    event = Event(name=name, at=START, execution_id=execution_id, sender=sender)
    assert event.is_for("go", "mine", roles) is is_for
