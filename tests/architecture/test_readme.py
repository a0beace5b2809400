"""The Python of the README and of the tour runs as it stands there."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import ModuleType

import pytest

from cloudsched import Schedule
from cloudsched.testing import START, Simulation

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
TOUR = (ROOT / "docs" / "start" / "quickstart.md").read_text("utf-8")
(EXAMPLE,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
HANDLERS, TEST, ONBOARD = re.findall(r"```python\n(.*?)```", TOUR, re.DOTALL)


@pytest.fixture
def handlers() -> Iterator[ModuleType]:
    """The tour's first example, as the module that its second one imports."""
    module = ModuleType("handlers")
    sys.modules["handlers"] = module
    exec(HANDLERS, module.__dict__)  # noqa: S102 - our own page
    yield module
    del sys.modules["handlers"]


def test_the_example_of_the_readme_is_a_green_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it is one file, which a reader can copy and run with pytest."""
    module = ModuleType("example")
    monkeypatch.setitem(sys.modules, "example", module)
    exec(compile(EXAMPLE, "README.md", "exec"), vars(module))  # noqa: S102 - our own page
    module.test_the_birthday_comes_every_year()


def test_the_test_of_the_tour_passes(handlers: ModuleType) -> None:
    """A newcomer who copies both blocks sees a green test."""
    assert handlers.app
    names: dict[str, object] = {}
    exec(TEST, names)  # noqa: S102 - our own page
    test = names["test_the_birthday_comes_every_year"]
    assert callable(test)
    test()


@pytest.mark.parametrize("signs_in", [True, False])
def test_the_durable_handler_of_the_tour_does_as_it_says(handlers: ModuleType, *, signs_in: bool) -> None:
    """Below the first example, as it stands: after three days it waits; who never signs in is asked, once."""
    exec(ONBOARD, handlers.__dict__)  # noqa: S102 - our own page
    app = handlers.app
    with Simulation(app) as sim:
        payload = {"email": "grace@example.org"}
        soon = Schedule.once(START + timedelta(hours=1))
        task = app.create(owner="ada", title="Welcome", handler="onboard", payload=payload, schedule=soon)
        sim.advance(timedelta(days=4))
        if signs_in:
            app.send_event(task.id, "signed-in")
        sim.advance(timedelta(days=30))
        (execution,) = sim.executions(task.id)
        assert (execution.status, execution.content) == ("SUCCEEDED", "account of grace@example.org")
        assert len(sim.inbox("ada")) == (0 if signs_in else 1)
