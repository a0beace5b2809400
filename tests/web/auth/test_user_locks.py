"""Lock keys that users name are their own: no user holds, waits for or learns of another user's lock."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.web.callers import MINUTE, SECOND, RoleHarness

from cloudsched import App, Context, Settings
from cloudsched.features.locks.fields import LockScope, scoped_lock_key

PRESS = {"lockKey": "press"}


app = App(Settings())
"""Work for users that a worker holds until it reports, and code that calls it with a lock of its own."""
app.handler("work", access="users", pull="q")(lambda: None)


@app.handler("flow", access="users")
def flow(ctx: Context, payload: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
    return ctx.call("work", {}, **payload)


def create(roles: RoleHarness, who: str, **fields: Any) -> dict[str, Any]:
    """Create a task that is due at once, with a caller's credential, and return it."""
    owner = {"owner": "ops"} if who == "admin" else {}
    due = {"schedule": {"at": (roles.sim.now + MINUTE).isoformat()}}
    answer = roles.create_task(who, {"title": who, "handler": "work", **owner, **due, **fields})
    task: dict[str, Any] = answer.json
    return task


def hold_all(roles: RoleHarness) -> set[str]:
    """Let a worker hold every run that it can get; return their tasks' ids."""
    roles.sim.advance(61 * SECOND)
    claims = roles.ask("admin", "POST", "/v1/queues/q/claim", {"limit": 50}).json["claims"]
    return {each["task"]["id"] for each in claims}


def patch(roles: RoleHarness, who: str, task: dict[str, Any], **changes: Any) -> Any:  # noqa: ANN401 - a response
    """Edit a task with a caller's credential."""
    return roles.ask(who, "PATCH", f"/v1/tasks/{task['id']}", changes)


OTHERS = {
    "a server": {"who": "admin"},
    "a server that says so": {"who": "admin", "lockScope": "global"},
    "another user": {"who": "bob"},
    "a server, for one owner": {"who": "admin", "lockScope": "owner"},
    "code": {"who": "ada", "handler": "flow", "payload": {"lock_key": "press"}},
}
"""Whose lock ``press`` is not the one that ada names."""


@pytest.mark.parametrize("holder", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "second"])
def test_a_user_cannot_hold_the_lock_of_another(roles: RoleHarness, holder: dict[str, Any], is_first: bool) -> None:  # noqa: FBT001 - a case
    """In either order, a user's task neither blocks another's lock nor waits for it, so it reveals nothing."""
    fields = {name: value for name, value in holder.items() if name != "who"}
    named = fields if fields.get("handler") == "flow" else {**PRESS, **fields}
    makers = [lambda: create(roles, "ada", **PRESS), lambda: create(roles, holder["who"], **named)]
    for make in makers if is_first else reversed(makers):
        make()
        assert len(hold_all(roles)) == 1, "the run got its lock"


SHARED = {
    "a user's tasks": ({"who": "ada"}, {"who": "ada"}),
    "a user's task and a server's for that owner": (
        {"who": "ada"},
        {"who": "admin", "owner": "ada", "lockScope": "owner"},
    ),
    "servers' tasks": ({"who": "admin"}, {"who": "admin", "owner": "ada"}),
    "a server's task and code's call": (
        {"who": "admin"},
        {"who": "ada", "handler": "flow", "lockKey": None, "payload": {"lock_key": "press"}},
    ),
    "a user's task and code's call for that owner": (
        {"who": "ada"},
        {
            "who": "ada",
            "handler": "flow",
            "lockKey": None,
            "payload": {"lock_key": "press", "lock_scope": "owner"},
        },
    ),
    "a user's task and children": (
        {"who": "ada"},
        {"who": "ada", "handler": None, "lockKey": None, "children": [{"handler": "work", **PRESS}]},
    ),
    "a server's children": (
        {"who": "admin"},
        {"who": "admin", "handler": None, "lockKey": None, "children": [{"handler": "work", **PRESS}]},
    ),
}
"""Pairs of tasks that name the same lock."""


@pytest.mark.parametrize("pair", SHARED.values(), ids=SHARED)
def test_tasks_that_name_the_same_lock_take_turns(
    roles: RoleHarness, pair: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    """A user's keys belong to that owner in every field; those of servers and code are shared by all owners."""
    for number, fields in enumerate(pair):
        create(roles, **{**PRESS, **fields})
        assert len(hold_all(roles)) == (number == 0)


def test_an_edit_keeps_the_scope_of_a_key_that_it_does_not_name(roles: RoleHarness) -> None:
    """An admin who edits a title does not change the scope of a user's key; a key that an admin names is global."""
    mine = create(roles, "ada", **PRESS)
    assert patch(roles, "admin", mine, title="Corrected").json["lockScope"] == "OWNER"
    assert patch(roles, "admin", mine, lockKey="other").json["lockScope"] == "GLOBAL"
    assert patch(roles, "ada", mine, lockKey="mine").json["lockScope"] == "OWNER"
    assert patch(roles, "admin", mine, lockScope="global").json["lockScope"] == "GLOBAL"
    assert "lockScope" not in patch(roles, "ada", mine, lockKey=None).json


def test_a_user_cannot_edit_a_task_that_holds_an_operators_lock(roles: RoleHarness) -> None:
    """Else a user's edit would run more under the lock, or leave it in silence; with a key of their own they may."""
    task = create(roles, "admin", owner="ada", **PRESS)
    refused = [patch(roles, "ada", task, title="Mine"), patch(roles, "ada", task, **PRESS)]
    assert [(each.status_code, each.json["field"]) for each in refused] == [(400, "lockScope")] * 2
    children = create(roles, "admin", owner="ada", handler=None, children=[{"handler": "work", **PRESS}])
    assert patch(roles, "ada", children, title="Mine").json["field"] == "children.0.lockScope"
    assert patch(roles, "ada", task, title="Mine", lockKey="own").json["lockScope"] == "OWNER"


NAMES = st.text(alphabet="ow:ner/gla{}", max_size=12)


@given(
    first=st.tuples(st.sampled_from(LockScope), NAMES, NAMES),
    second=st.tuples(st.sampled_from(LockScope), NAMES, NAMES),
)
def test_keys_of_different_scopes_never_meet(
    first: tuple[LockScope, str, str], second: tuple[LockScope, str, str]
) -> None:
    """Whatever users and code name: two keys are one lock only if scope and key are the same, and so is the owner."""

    def identity(scope: LockScope, owner: str, key: str) -> tuple[str, ...]:
        return (scope, key) if scope is LockScope.GLOBAL else (scope, owner, key)

    first, second = ((scope, owner.replace("/", ""), key) for scope, owner, key in (first, second))
    same = identity(*first) == identity(*second)
    keys = [scoped_lock_key(key, scope, owner) for scope, owner, key in (first, second)]
    assert (keys[0] == keys[1]) == same
