"""Views of a registry: what the app's code registers is one thing, which all of them share."""

from __future__ import annotations

import pytest

from cloudsched.engine.handlers.registry import Registry, builtin_handler
from cloudsched.errors import UnknownHandler

BUILT_IN = builtin_handler("cloudsched.echo", lambda payload: payload, takes_context=False)


def test_a_view_changes_nothing_of_the_registry() -> None:
    """A view for users leaves the registry open for servers, and a built-in handler of a view is in no other."""
    registry = Registry()
    registry.register("report")(lambda: "reported")
    users, extended = registry.for_users(), registry.with_builtin(BUILT_IN)
    assert (registry.is_for_users, users.is_for_users, extended.is_for_users) == (False, True, False)
    assert registry.get("report") is extended.get("report")
    with pytest.raises(UnknownHandler, match="for users"):
        users.get("report")
    assert "cloudsched.echo" in extended
    assert "cloudsched.echo" not in registry
    assert extended.for_users().with_builtin(BUILT_IN).is_for_users
