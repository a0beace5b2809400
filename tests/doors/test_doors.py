"""Whatever a person tries has the same outcome through every door as at the API with their own key."""

from __future__ import annotations

import pytest
from tests.cases import try_each
from tests.doors.acts import ACTS, Act
from tests.doors.doors import DOORS, Door
from tests.doors.outcomes import compare, enter, enter_front


@pytest.mark.parametrize("door", DOORS, ids=lambda each: each.name)
@try_each("act", ACTS)
def test_the_outcome_is_that_of_the_api(door: Door, act: Act) -> None:
    """For everybody, and whoever owns and wrote what it is about."""
    if door.why_not(act) is not None:
        return
    for who in [each for each in door.actors if each in act.actors]:
        for origin in act.origins:
            expected, found = enter_front(who, act.name, origin), enter(door, who, act, origin)
            if difference := compare(door, act, who, origin, expected, found):
                pytest.fail(f"{who}, {origin}: {difference}")
