"""What people typed into schedulers means the same in a draft as to the grammar: times, question and refusal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from tests.cases import try_each
from tests.drafts_app import make_app
from tests.harness import LocalClient
from tests.language.collected_phrases import CASES, judge, parse_now
from tests.language.own_phrases import OWN, Own
from tests.language.walk import NOW, ZONE
from werkzeug.wrappers import Request

from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.language.reader import read
from cloudsched.language.result import Reading
from cloudsched.testing import Simulation
from cloudsched.web.functions import serve_api

Ask = Callable[..., dict[str, Any]]

SAID = [case for case in CASES if case["phrase"]]  # a request without a text is no draft
MOMENTS = sorted({parse_now(case).astimezone(UTC) for case in SAID})
HERE = NOW.replace(tzinfo=ZoneInfo(ZONE))


@contextmanager
def drafts_at(now: datetime) -> Iterator[tuple[Simulation, Ask]]:
    """Ask an API for drafts at this instant, at which the clock stands: the grammar is asked as of the same one.

    The caller is a server, for ada.
    """
    with Simulation(make_app(), start=now, each_look=timedelta(0)) as sim:
        client = LocalClient(Request.application(lambda request: serve_api(sim.app, request)))

        def ask(text: str, timezone: str, **context: Any) -> dict[str, Any]:
            content = {"text": text, "timezone": timezone, "owner": "ada", "context": {"handler": "remind", **context}}
            answer = client.post("/v1/tasks/draft", json=content)
            assert answer.status_code == 200, (text, answer.text)
            drafted: dict[str, Any] = answer.get_json()
            return drafted

        yield sim, ask


def find_difference(reading: Reading, drafted: dict[str, Any], now: datetime) -> str | None:
    """Return what a draft says otherwise than the grammar; None if they agree."""
    codes = {each["code"] for each in drafted["missing"]}
    if reading.kind == "question":
        asked = [each for each in drafted["questions"] if each["field"] == "schedule"]
        given = [[answer["label"] for answer in each["answers"]] for each in asked]
        labels = [[each.label for each in reading.readings]]
        return None if given == labels and "draftToken" not in drafted else f"asks {given}, not {labels}"
    if reading.schedule is None:
        wanted = [each.code for each in reading.problems]
        agrees = drafted["decision"] == "REFUSAL" and codes == set(wanted) and "draftToken" not in drafted
        return None if agrees else f"is a {drafted['decision']} ({codes}) instead of a refusal because of {wanted}"
    is_now = reading.schedule.is_now
    times = [now.isoformat()] if is_now else [at.isoformat() for at in reading.schedule.upcoming(now, 5)]
    if not times:
        return None if codes == {"past"} else f"has {codes} instead of past"
    if codes & {"too-soon", "too-often"}:
        return None if "draftToken" not in drafted else "is refused and confirmable"
    shown = [datetime.fromisoformat(each["utc"]).isoformat() for each in drafted["next"]]
    is_free = not reading.schedule.is_anchored  # its phase is that of the draft
    told = reading.schedule if is_now or is_free else reading.schedule.continue_from(datetime.fromisoformat(times[0]))
    same = drafted["description"] == told.describe() and (is_free or shown == times)
    return None if same and shown else f"is {drafted['description']} at {shown}, not at {times}"


@try_each("now", MOMENTS)
def test_a_collected_phrase_means_the_same_in_a_draft(now: datetime) -> None:
    """Times, question or refusal are those of the grammar; a phrase that it reads rightly is right in the draft."""
    differences = []
    with drafts_at(now) as (_, ask):
        for case in (each for each in SAID if parse_now(each).astimezone(UTC) == now):
            reading = read(case["phrase"], now=now, timezone=case["zone"])
            drafted = ask(case["phrase"], case["zone"])
            difference = find_difference(reading, drafted, now)
            schedule = Schedule.model_validate(drafted["schedule"]) if "draftToken" in drafted else None
            if difference is None and schedule is not None and judge(case, reading.schedule) == "right":
                difference = None if judge(case, schedule) == "right" else "is wrong"
            differences += [(case["id"], case["phrase"], difference)] if difference else []
    assert differences == []


def test_a_phrase_of_our_own_means_the_same_in_a_draft() -> None:
    """New tasks and changes of one alike."""
    differences = []
    with drafts_at(HERE) as (sim, ask):
        for own in OWN:
            difference = _compare_own(own, sim, ask)
            differences += [(own.phrase, own.current, difference)] if difference else []
    assert differences == []


def _compare_own(own: Own, sim: Simulation, ask: Ask) -> str | None:
    if not own.current:
        return find_difference(read(own.phrase, now=HERE, timezone=ZONE), ask(own.phrase, ZONE), HERE)
    current = read(own.current, now=HERE, timezone=ZONE).schedule
    task = sim.app.create(owner="ada", title="It", handler="remind", payload={"text": "x"}, schedule=current)
    reading = read(own.phrase, now=HERE, timezone=ZONE, current=task.schedule)
    drafted = ask(own.phrase, ZONE, taskId=task.id)
    sim.app.delete(task.id)
    if reading.kind == "schedule" and drafted["decision"] != "UPDATE":
        return f"is a {drafted['decision']}, not an update"
    return find_difference(reading, drafted, HERE)
