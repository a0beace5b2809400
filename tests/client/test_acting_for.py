"""A client that acts for a user has that user's authority, whatever the user is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cloudsched.errors import NotFound

if TYPE_CHECKING:
    from cloudsched.client import Client
    from cloudsched.testing import Simulation


@pytest.mark.parametrize("user", ["ada", "auth0|5f7c", "ada@example.com", "Zoë, the 100 %", "日本", "a&b=c+d;e"])
def test_it_has_the_authority_of_the_user(sim: Simulation, client: Client, user: str) -> None:
    """It creates tasks of theirs and finds no others; the client from which it comes is what it was."""
    acting = client.acting_for(user)
    created = acting.create(title="Mine", handler="greet", payload={"name": "Ada"})
    other = client.create(title="Not mine", handler="greet", payload={"name": "Ada"}, owner="bob")
    assert sim.app.get(created.id).owner == created.owner == user
    assert [each.id for each in acting.tasks()] == [created.id]
    with pytest.raises(NotFound):
        acting.get(other.id)
    assert {each.id for each in client.tasks()} == {created.id, other.id}
    assert client.acting_for("bob").get(other.id).id == other.id
