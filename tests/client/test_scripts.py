"""Stored scripts through both clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cloudsched.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from cloudsched.client import Client
    from cloudsched.testing import Simulation

HELLO = "return `Hello ${input.name}`"


def test_a_script_is_put_read_listed_and_deleted(client: Client) -> None:
    """It is read as it was put, by its owner alone; a list leaves sources out; after its deletion it is not found."""
    made = client.put_script("hello", HELLO, owner="ada", description="Greets.", tools=[])
    assert (made.name, made.owner, made.version, made.source, made.tools) == ("hello", "ada", 1, HELLO, ())
    assert client.script("hello", "ada") == made
    (listed,) = client.scripts("ada")
    assert (listed.name, listed.description, listed.source) == ("hello", "Greets.", None)
    assert client.put_script("hello", "return 2", owner="ada").version == 2
    assert client.scripts("bob") == []
    with pytest.raises(NotFound, match="hello"):
        client.script("hello")
    client.delete_script("hello", "ada")
    for again in (lambda: client.script("hello", "ada"), lambda: client.delete_script("hello", "ada")):
        with pytest.raises(NotFound):
            again()


def test_scripts_call_each_other_in_a_task_that_names_one(client: Client, sim: Simulation) -> None:
    """What the client stores is what runs, by its newest version at each call."""
    client.put_script("hello", HELLO, owner="ada")
    client.put_script("all", "return [await scripts.hello({name: 'A'}), await scripts.hello({name: 'B'})]", owner="ada")
    task = client.create(title="All", owner="ada", script={"name": "all"}, schedule="in 5 minutes")
    sim.run_until_idle()
    (execution,) = client.executions(task.id)
    assert execution.content == ["Hello A", "Hello B"]


@pytest.mark.parametrize(
    ("name", "source", "field"),
    [("broken", "return (", "source"), ("a b", HELLO, "name"), ("big", "1" * 70_000, "source")],
)
def test_a_wrong_script_is_refused_by_field(client: Client, name: str, source: str, field: str) -> None:
    """As the API refuses it, and nothing is stored; a name is one step of a path, whatever is in it."""
    with pytest.raises(InvalidInput) as refused:
        client.put_script(name, source)
    assert refused.value.field == field
    assert client.scripts() == []
