"""A server that acts for a user can do what that user could have done, and nothing else; the record names both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import pytest
from tests.cases import try_each
from tests.web.auth.test_roles import RIGHTS, body_for, path_for
from tests.web.callers import PEOPLE, RoleHarness, make_keys

from cloudsched import App, Context, Settings
from cloudsched.errors import Forbidden
from cloudsched.testing import Simulation
from cloudsched.web.api.operation import Operation
from cloudsched.web.auth.roles import ON_BEHALF_OF, Caller, Role

KEYS = {**PEOPLE, "delegate": (Role.DELEGATE, None)}
TASK: dict[str, Any] = {"title": "Mine", "handler": "open", "payload": {}, "schedule": {"at": "2027-01-01T00:01:00Z"}}


def make_app() -> App:
    """Return an app with a handler for users, one for servers alone, and one that waits for an admin."""
    app = App(Settings())
    app.handler("open", access="users")(lambda: "open")
    app.handler("refund_everybody")(lambda: "refunded")

    @app.handler("strict", access="users")
    def strict(ctx: Context) -> Any:  # noqa: ANN401 - what the event carries
        return ctx.wait_for("approved", by=("admin",))

    return app


@contextmanager
def serve(**limits: int) -> Iterator[RoleHarness]:
    keys, access = make_keys(KEYS, **limits)
    with Simulation(make_app(), access=access) as sim:
        yield RoleHarness(sim, keys)


@pytest.fixture
def roles() -> Iterator[RoleHarness]:
    """A caller of each role, and a server that acts for users."""
    with serve() as served:
        yield served


@try_each("operation", RIGHTS, roles=serve)
def test_a_delegate_does_nothing_by_itself(roles: RoleHarness, operation: Operation) -> None:
    """Without a user it gets 403 for everything, which says how to name one."""
    answer = roles.ask(
        "delegate", operation.method, path_for(operation, roles.task("ada", **TASK)), body_for(operation)
    )
    assert (answer.status_code, ON_BEHALF_OF in answer.json["detail"]) == (403, True)


def test_the_record_names_both(roles: RoleHarness) -> None:
    """The history says who it was and through which server; a user's own act says nothing of any."""
    created = roles.create_task("delegate", TASK, **{ON_BEHALF_OF: "ada"}).json["id"]
    roles.ask("ada", "POST", f"/v1/tasks/{created}/pause")
    entries = roles.fetch("ada", f"/v1/tasks/{created}/history")["entries"]
    assert [each["by"] for each in entries] == [
        {"role": "owner", "subject": "key:ada"},
        {"role": "owner", "subject": "user:ada", "via": "key:delegate"},
    ]


NOBODY = ["system", ".", "..", "__all__", "a/b", "a\x00", "a\n", "\x7f", "x" * 129, ""]


@try_each("user", NOBODY)
def test_nobody_can_be_what_is_reserved(roles: RoleHarness, user: str) -> None:
    """Neither the system, nor what is empty, too long or has a control character, is a user for whom one acts."""
    answer = roles.ask("admin", "GET", "/v1/tasks", **{ON_BEHALF_OF: quote(user, safe="")})
    assert (answer.status_code, answer.json["field"]) == (400, ON_BEHALF_OF)


@try_each("header", ["ada, bob", "ada,bob", "ad a", "%zz", "%", "%ff", '"ada"', "ad\u00e4"])
def test_a_name_that_is_not_encoded_is_refused(roles: RoleHarness, header: str) -> None:
    """Two names, a broken escape, bytes that are no UTF-8: none is taken for another user."""
    answer = roles.ask("admin", "GET", "/v1/tasks", **{ON_BEHALF_OF: header})
    assert (answer.status_code, answer.json["field"]) == (400, ON_BEHALF_OF)


@try_each("role", [each for each in Role if each not in {Role.ADMIN, Role.DELEGATE}])
def test_others_act_for_nobody_else(role: Role) -> None:
    """No other role acts for anybody; acting for oneself is nothing new, and no way to more."""
    caller = Caller("key:x", role, "ada")
    with pytest.raises(Forbidden, match=f"The role {role} acts for nobody else; only admin and delegate do"):
        caller.acting_for("bob")
    if role in {Role.USER, Role.READER}:
        assert caller.acting_for("ada") is caller


def test_nobody_acts_for_somebody_through_somebody() -> None:
    """Whoever a server acts for has a user's authority, and so acts for nobody else."""
    acting = Caller("key:x", Role.ADMIN, None).acting_for("ada")
    assert (acting.role, acting.owner, acting.subject, acting.via) == (Role.USER, "ada", "user:ada", "key:x")
    with pytest.raises(Forbidden):
        acting.acting_for("bob")
