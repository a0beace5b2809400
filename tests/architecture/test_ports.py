"""A port asks for no more than somebody can hold who writes an adapter, and what is no port is elsewhere."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tests.architecture.test_imports import MODULES
from tests.cases import try_each

PORTS = [each for each in MODULES if each.startswith("engine/ports/") and not each.endswith("__init__")]
MOST = 16


def _list_protocols(module: str) -> list[Any]:
    loaded = import_module(f"cloudsched.{module.replace('/', '.')}")
    return [
        each
        for each in vars(loaded).values()
        if getattr(each, "_is_protocol", False) and each.__module__ == loaded.__name__
    ]


@try_each("module", PORTS)
def test_the_room_of_ports_has_only_ports(module: str) -> None:
    """What adapters and the engine share besides is in a room that says what it is."""
    assert _list_protocols(module)


@try_each("module", PORTS)
def test_a_port_has_few_members(module: str) -> None:
    """Whoever writes an adapter reads the whole port. A further concern is a port of its own."""
    members = {
        each.__name__: [name for name in vars(each) if not name.startswith("_")] for each in _list_protocols(module)
    }
    assert not {name: len(found) for name, found in members.items() if len(found) > MOST}
