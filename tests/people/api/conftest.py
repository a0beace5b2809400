"""The API's fixtures, for the operations of people."""

from tests.web.conftest import _allow_slow_last_poll, app, call, greeting, roles, world

__all__ = ["_allow_slow_last_poll", "app", "call", "greeting", "roles", "world"]
