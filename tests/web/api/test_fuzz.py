"""No request makes the server fail, and no refused request leaves anything stored."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.web.conftest import Call, create, fetch

from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.testing import Simulation

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**40), 10**40)
    | st.floats()
    | st.text(st.characters(codec=None, categories=None), max_size=8)
    | st.sampled_from(
        ["", "P999999999D", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "__x__", "UTC", "1e999"]
    )
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(sorted(field.alias or name for name, field in TaskDraft.model_fields.items())) | st.text(
    max_size=5
)
RULES = st.sampled_from(
    ["FREQ=DAILY", "FREQ=MINUTELY;COUNT=3", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", "FREQ=SECONDLY", "X"]
)
SCHEDULES = st.fixed_dictionaries(
    {},
    optional={
        "at": SCALARS | st.datetimes(timezones=st.timezones()).map(lambda at: at.isoformat()),
        "rrule": RULES | st.lists(RULES, max_size=2) | SCALARS,
        "dtstart": SCALARS | st.datetimes().map(lambda at: at.isoformat(timespec="seconds")),
        "timezone": st.sampled_from(["UTC", "Europe/Paris", "Pacific/Apia", "Nowhere"]) | SCALARS,
        "rdates": ANYTHING,
        "exdates": st.lists(st.datetimes().map(lambda at: at.isoformat(timespec="seconds")), max_size=2),
        "gap": st.sampled_from(["shift", "skip", "x"]),
        "subDaily": st.sampled_from(["elapsed", "wall"]),
    },
)
POLICIES = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("maxRetries", "base", "factor", "mode", "window"), SCALARS)
)
BODIES = st.builds(
    lambda named, more: {**named, **more},
    st.fixed_dictionaries(
        {"owner": st.just("ada"), "title": st.just("t"), "handler": st.just("anything")},
        optional={
            "schedule": SCHEDULES,
            "payload": ANYTHING,
            "retry": POLICIES,
            "catchUp": POLICIES,
            "source": ANYTHING,
        },
    ),
    st.dictionaries(NAMES, ANYTHING, max_size=3),
)
FUZZ = settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def _encoded(body: object) -> bytes:
    return json.dumps(body).encode()


@FUZZ
@given(body=BODIES)
def test_no_body_of_a_creation_causes_a_server_error(call: Call, sim: Simulation, body: dict[str, Any]) -> None:
    """POST answers 201, 200, or a 4xx that names a field; after a 4xx the store is as it was."""
    before = sim.counts.copy()
    answer = call("POST", "/v1/tasks", _encoded(body))
    assert answer.status_code < 500, answer.get_data(as_text=True)
    if answer.status_code >= 400:
        assert "field" in answer.get_json(force=True), answer.get_data(as_text=True)
        assert sim.counts.since(before).commits == 0
    else:
        task_id = answer.json["id"]
        assert call("GET", f"/v1/tasks/{task_id}").status_code == 200, "what was stored can be read"
        assert call("GET", f"/v1/tasks/{task_id}/upcoming").status_code == 200
        assert call("DELETE", f"/v1/tasks/{task_id}").status_code == 204


@FUZZ
@given(patch=BODIES | st.dictionaries(NAMES, ANYTHING | SCHEDULES | POLICIES, max_size=3))
def test_no_patch_causes_a_server_error(call: Call, sim: Simulation, patch: dict[str, Any]) -> None:
    """PATCH answers 200 or a 4xx that names a field; after a 4xx the task is as it was."""
    create(call, id="t")
    patch.pop("owner", None)
    before, known = sim.counts.copy(), fetch(call, "/v1/tasks/t")
    answer = call("PATCH", "/v1/tasks/t", _encoded(patch))
    assert answer.status_code < 500, answer.get_data(as_text=True)
    if answer.status_code >= 400:
        assert "field" in answer.get_json(force=True), answer.get_data(as_text=True)
        assert sim.counts.since(before).commits == 0
        assert fetch(call, "/v1/tasks/t") == known
    else:
        assert fetch(call, "/v1/tasks/t")["revision"] >= known["revision"]
    call("DELETE", "/v1/tasks/t")
