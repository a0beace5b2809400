"""What keeps no history of its own is in the audit trail as well: deletions, and what was done to budgets."""

from __future__ import annotations

from typing import Any

import pytest
from tests.web.callers import DAY, HOUR, MINUTE, ApiWorld

from cloudsched import App, Settings
from cloudsched.adapters.sqlite.sweep import SqliteSweep
from cloudsched.domain.documents.audit_note import KEPT_FOR
from cloudsched.errors import StoreUnavailable

app = App(Settings())
app.handler("work", access="users")(lambda: None)


def create(world: ApiWorld, task_id: str, owner: str = "ada") -> None:
    world.sim.app.create(id=task_id, owner=owner, title=f"Title of {task_id}", handler="work", schedule="in 3 days")


def read(world: ApiWorld, query: str = "", who: str = "root") -> list[dict[str, Any]]:
    """Return all pages of the trail."""
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        page = world.ask(who, f"/v1/audit?{query}{token and f'&pageToken={token}'}", method="GET").json
        assert page["isComplete"]
        found += page["entries"]
        token = page.get("nextPageToken")
        if not token:
            return found


def test_who_deleted_a_task_is_known_when_it_is_gone(world: ApiWorld) -> None:
    """With its title and owner, to those who saw the task; other changes of it go with it."""
    create(world, "t")
    assert world.ask("ada", "/v1/tasks/t", method="DELETE").status_code == 204
    [entry] = read(world)
    assert (entry["action"], entry["taskId"], entry["title"], entry["owner"]) == ("DELETED", "t", "Title of t", "ada")
    assert entry["by"]["subject"] == "key:ada"
    create(world, "b", "bob")
    world.sim.app.delete("b")
    assert [each["taskId"] for each in read(world)] == ["b", "t"]
    assert [each["taskId"] for each in read(world, who="ada")] == ["t"]
    assert read(world, "action=PAUSED") == []
    world.sim.advance(KEPT_FOR + DAY)
    world.sim.app.sweep()
    assert read(world) == []


def test_a_deletion_that_a_crash_interrupts_is_noted_once(world: ApiWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the sweep, which completes it; a note that was written already is not written again."""
    for name in ("before", "after"):
        create(world, name)

    def crash(*_: object) -> None:
        raise StoreUnavailable("the store", "it is away")

    with monkeypatch.context() as broken:
        broken.setattr("cloudsched.engine.child_tasks.write_note", crash)
        with pytest.raises(StoreUnavailable):
            world.sim.app.delete("before")
    assert read(world, "action=DELETED") == []
    with monkeypatch.context() as broken:
        broken.setattr(SqliteSweep, "purge", crash)
        with pytest.raises(StoreUnavailable):
            world.sim.app.delete("after")
    world.sim.advance(HOUR)
    assert sorted(each["taskId"] for each in read(world, "action=DELETED")) == ["after", "before"]


def test_notes_and_histories_are_one_list(world: ApiWorld) -> None:
    """In the order of time, each once, on pages of any size, between any bounds."""
    for number in range(6):
        create(world, f"t{number}")
        world.sim.advance(MINUTE)
    for number in (1, 4, 5):
        world.sim.app.delete(f"t{number}")
        world.sim.app.pause("t0")
        world.sim.app.resume("t0")
        world.sim.advance(MINUTE)
    whole = read(world)
    assert len(whole) == 3 + 3 + 6
    assert [each["at"] for each in whole] == sorted((each["at"] for each in whole), reverse=True)
    for size in (1, 2, 3, 5):
        assert read(world, f"pageSize={size}") == whole
    since, until = whole[7]["at"], whole[2]["at"]
    between = [each for each in whole if since <= each["at"] < until]
    bounds = f"from={since}&until={until}".replace("+", "%2B")
    assert read(world, f"{bounds}&pageSize=2") == between


def test_who_set_a_budget_is_known(world: ApiWorld) -> None:
    """What it was before and after; setting it to what it is leaves nothing; its owner sees it, others do not."""
    world.ask("root", "/v1/people/bob/budget", {"maxQueriesPerMonth": 1}, method="PUT")
    world.sim.advance(MINUTE)
    path = "/v1/people/ada/budget"
    for most in (100, 100, 250):
        world.ask("root", path, {"maxQueriesPerMonth": most}, method="PUT")
        world.sim.advance(MINUTE)
    world.ask("root", path, method="DELETE")
    deleted, raised, made, bobs = read(world)
    assert [each["action"] for each in (deleted, raised, made)] == ["BUDGET_DELETED", "BUDGET_SET", "BUDGET_SET"]
    assert raised["fields"] == [{"field": "maxQueriesPerMonth", "before": "100", "after": "250"}]
    assert made["fields"] == [{"field": "maxQueriesPerMonth", "after": "100"}]
    assert {each["owner"] for each in (deleted, raised, made)} == {"ada"}
    assert "taskId" not in made
    assert bobs["owner"] == "bob"
    assert read(world, who="ada") == [deleted, raised, made]
