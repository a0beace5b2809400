"""Drafts through both clients."""

from __future__ import annotations

import pytest
from tests.drafts_app import make_app

from cloudsched import App
from cloudsched.client import Client
from cloudsched.errors import InvalidInput


@pytest.fixture
def app() -> App:
    """The app with handlers for drafts."""
    return make_app()


def test_a_draft_is_made_and_confirmed(client: Client) -> None:
    """A creation, a change of it, and one that is not complete."""
    drafted = client.draft("remind me to stretch every weekday at 9:00", timezone="Europe/Paris", owner="ada")
    task = client.confirm(drafted)
    assert client.confirm(drafted).id == task.id
    change = client.draft("move my reminder to 10:00", timezone="Europe/Paris", owner="ada")
    assert change.task_id == task.id
    assert client.confirm(change).revision == task.revision + 1
    asked = client.draft("remind me to stretch at 5", timezone="Europe/Paris", owner="ada")
    with pytest.raises(InvalidInput, match="schedule"):
        client.confirm(asked)


def test_words_are_described_where_the_owner_is(client: Client) -> None:
    """A server asks for somebody else; the schedule says that it follows, and in which zone."""
    client.put_person("ada", timezone="Asia/Tokyo")
    shown = client.describe_schedule("every day at 9", timezone="owner", count=1, owner="ada")
    assert shown.description == "every day at 09:00, wherever its owner is (Asia/Tokyo)"
    assert shown.occurrences[0].local.isoformat() == "2027-01-02T09:00:00+09:00"
