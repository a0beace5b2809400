"""What somebody may do holds below the doors, too: for whose things, and until when."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.authorities import A_USER

from cloudsched import App
from cloudsched.config.settings import Settings
from cloudsched.domain.documents.person import PersonSpec
from cloudsched.engine.authority import OWN_CODE, Authority
from cloudsched.errors import Forbidden, Unauthenticated
from cloudsched.features.budgets.budgets import Budgets
from cloudsched.features.calendars.wiring import CalendarsWiring
from cloudsched.people.wiring import PeopleWiring
from cloudsched.scripts.wiring import ScriptsWiring
from cloudsched.testing import Simulation

Act = Callable[[App, Authority], Any]


def _create(app: App, by: Authority) -> Any:  # noqa: ANN401 - whatever it is
    return app.acting_with(by).create(handler="open", owner="ada", schedule="every day at 9")


WRITES: dict[str, Act] = {
    "create a task": _create,
    "a calendar": lambda app, by: CalendarsWiring.of(app.container).calendars.put("c", "ada", weekdays=["MO"], by=by),
    "delete a calendar": lambda app, by: CalendarsWiring.of(app.container).calendars.delete("kept", "ada", by=by),
    "a script": lambda app, by: ScriptsWiring.of(app.container).scripts.put("s", "ada", source="return 1", by=by),
    "delete a script": lambda app, by: ScriptsWiring.of(app.container).scripts.delete("kept", "ada", by=by),
    "a feed": lambda app, by: PeopleWiring.of(app.container).feeds.create("ada", by=by),
    "a person": lambda app, by: PeopleWiring.of(app.container).people.put("ada", PersonSpec(name="Ada"), by=by),
    "delete a person": lambda app, by: PeopleWiring.of(app.container).people.delete("ada", by=by),
    "erase a person": lambda app, by: PeopleWiring.of(app.container).person_jobs.erase("ada", by=by),
    "export a person": lambda app, by: PeopleWiring.of(app.container).person_jobs.export("ada", by=by),
}
"""What is written for an owner."""
OF_A_TASK: dict[str, Act] = {
    "edit": lambda app, by: app.acting_with(by).update("kept", title="Other"),
    "pause": lambda app, by: app.acting_with(by).pause("kept"),
    "trigger": lambda app, by: app.acting_with(by).trigger("kept"),
    "cancel": lambda app, by: app.acting_with(by).cancel("kept"),
    "delete": lambda app, by: app.acting_with(by).delete("kept"),
}
"""What is done with a task; whose it is, `authorize` says."""
CHANGES: dict[str, Act] = WRITES | OF_A_TASK


@pytest.fixture
def app() -> Iterator[App]:
    """Ada has a task, a calendar, a script and contacts."""
    made = App(Settings())
    made.handler("open", access="users")(lambda: None)
    with Simulation(made):
        made.create(id="kept", handler="open", owner="ada", schedule="every day at 9")
        CalendarsWiring.of(made.container).calendars.put("kept", "ada", weekdays=["MO"], by=A_USER)
        ScriptsWiring.of(made.container).scripts.put("kept", "ada", source="return 1", by=A_USER)
        made.put_person("ada", name="Ada")
        yield made


@pytest.mark.parametrize("act", WRITES.values(), ids=WRITES)
def test_nothing_is_written_for_another_owner(app: App, act: Act) -> None:
    """Even if a door had resolved the wrong owner. Who may only look is refused, too, and the owner is not."""
    for by in (replace(A_USER, owner="bob"), replace(A_USER, owner="ada", sender=None)):
        with pytest.raises(Forbidden):
            act(app, by)
    assert app.container.store.load("kept")
    act(app, replace(A_USER, owner="ada"))


@pytest.mark.parametrize("act", CHANGES.values(), ids=CHANGES)
def test_nothing_is_changed_after_the_end_of_a_credential(app: App, act: Act) -> None:
    """What began before it, such as a batch, is refused from then on."""
    is_over = False
    by = replace(A_USER, owner="ada", is_valid=lambda: not is_over)
    is_over = True
    before = app.get("kept")
    with pytest.raises(Unauthenticated):
        act(app, by)
    assert app.get("kept") == before
    is_over = False
    act(app, by)


def test_only_servers_change_budgets(app: App) -> None:
    """Not their owners."""
    budgets = Budgets.of(app.container)
    for by in (A_USER, replace(OWN_CODE, is_valid=lambda: False)):
        with pytest.raises((Forbidden, Unauthenticated)):
            budgets.put("ada", 10**6, by=by)
    budgets.put("ada", 10, by=OWN_CODE)
    with pytest.raises(Forbidden):
        budgets.delete("ada", by=A_USER)
