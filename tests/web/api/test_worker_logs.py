"""What a worker in any language sends of its log: taken from the holder of the lease only, within the usual bounds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.instants import about
from tests.web.callers import ENDS, ERROR, HOUR, KEYS, MINUTE, VERBS, ApiWorld, make_keys, run_path

from cloudsched import App, Settings
from cloudsched.domain.documents.log_lines import MAX_LINE_BYTES, MAX_LINES, MAX_LOG_BYTES, LogLine, RunLog
from cloudsched.testing import START, Simulation


def open_world(**options: Any) -> Iterator[ApiWorld]:
    keys, access = make_keys(KEYS)
    with Simulation(App(Settings()), access=access, **options) as sim:
        yield ApiWorld(sim, keys)


@pytest.fixture
def world() -> Iterator[ApiWorld]:
    yield from open_world()


def send(world: ApiWorld, who: str, verb: str, claim: dict[str, Any], *lines: object, omitted: int = 0) -> int:
    """Send a claim's log with one of its verbs; return the answer's status code."""
    logs = {"lines": [{"text": each} if isinstance(each, str) else each for each in lines], "omittedLines": omitted}
    body = {"leaseToken": claim["leaseToken"], "logs": logs, **(ERROR if verb == "fail" else {})}
    return world.ask(who, f"{run_path(claim)}/{verb}", body).status_code


def read(world: ApiWorld, claim: dict[str, Any]) -> dict[str, Any]:
    """Read the log of a claimed run, as an admin."""
    answer = world.ask("root", f"{run_path(claim)}/logs", method="GET")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json
    return found


def texts(world: ApiWorld, claim: dict[str, Any]) -> list[str]:
    return [each["text"] for each in read(world, claim)["lines"]]


def test_where_nothing_is_kept_nothing_is_asked_for() -> None:
    """The claim has no `logs`; lines that are sent all the same are ignored, and end no work."""
    for world in open_world(kept_logs="off"):
        world.offer("a")
        claim = world.claim("gpu-1")
        assert "logs" not in claim
        assert send(world, "gpu-1", "heartbeat", claim, "line") == 200
        assert send(world, "gpu-1", "complete", claim, "line") == 200
        assert texts(world, claim) == []


@pytest.mark.parametrize("verb", ENDS)
def test_lines_are_kept_as_they_are_sent(world: ApiWorld, verb: str) -> None:
    """With heartbeats and every report: each replaces what the claim sent before; without any, that stays."""
    world.offer("a", retry={"maxRetries": 0})
    claim = world.claim("gpu-1")
    world.sim.advance(MINUTE)
    line = {"text": "one", "at": "2027-01-01T00:00:30Z", "level": "WARNING", "logger": "render.gpu"}
    assert send(world, "gpu-1", "heartbeat", claim, line) == 200
    assert read(world, claim) == {"lines": [{**line, "attempt": 1}], "omittedLines": 0, "isUnreadable": False}
    assert world.report("gpu-1", "heartbeat", run_path(claim), claim["leaseToken"]).status_code == 200
    assert texts(world, claim) == ["one"]
    assert send(world, "gpu-1", verb, claim, line, "two") == 200
    assert [(each["text"], each["level"], each["logger"]) for each in read(world, claim)["lines"]] == [
        ("one", "WARNING", "render.gpu"),
        ("two", "INFO", ""),
    ]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("who", ["gpu-2", "ada"])
def test_only_the_claim_s_holder_writes(world: ApiWorld, who: str, verb: str) -> None:
    """Neither another caller with its token, nor the holder with a made-up one, adds or removes a line."""
    world.offer("a")
    claim = world.claim("gpu-1")
    send(world, "gpu-1", "heartbeat", claim, "mine")
    assert send(world, who, verb, claim, "forged", "forged") == 409
    assert send(world, "gpu-1", verb, {**claim, "leaseToken": "0" * 32}, "forged", "forged") == 409
    assert texts(world, claim) == ["mine"]


@pytest.mark.parametrize("verb", ENDS)
def test_who_ends_another_s_claim_adds_nothing(world: ApiWorld, verb: str) -> None:
    """An admin may end it, but what the worker has logged is the worker's."""
    world.offer("a", retry={"maxRetries": 0})
    claim = world.claim("gpu-1")
    send(world, "gpu-1", "heartbeat", claim, "mine")
    assert send(world, "root", verb, claim, "an admin's", "another") == 200
    assert texts(world, claim) == ["mine"]


@pytest.mark.parametrize("verb", ["release", "fail"])
def test_the_next_holder_leaves_the_lines_before_alone(world: ApiWorld, verb: str) -> None:
    """Also after a release, when both have the same attempt; and the last holder's token writes nothing any more."""
    world.offer("a", retry={"maxRetries": 1})
    first = world.claim("gpu-1")
    send(world, "gpu-1", "heartbeat", first, "first's")
    assert send(world, "gpu-1", verb, first, "first's", "first's too") == 200
    world.sim.advance(HOUR)
    second = world.claim("gpu-2")
    for lines in (["second's"], ["second's", "second's too"]):
        assert send(world, "gpu-2", "heartbeat", second, *lines) == 200
    assert send(world, "gpu-1", "heartbeat", first, *["forged"] * 9) == 409
    assert send(world, "gpu-1", verb, first, *["forged"] * 9) in {200, 409}, "it may be a repetition, or too late"
    assert texts(world, second) == ["first's", "first's too", "second's", "second's too"]
    attempts = [each["attempt"] for each in read(world, second)["lines"]]
    assert attempts == ([1, 1, 1, 1] if verb == "release" else [1, 1, 2, 2])


def test_a_delayed_heartbeat_takes_nothing_back(world: ApiWorld) -> None:
    """Requests may overtake each other: one with fewer lines is older."""
    world.offer("a")
    claim = world.claim("gpu-1")
    send(world, "gpu-1", "heartbeat", claim, "one", "two", "three")
    for lines in ([], ["one"], ["one", "two"]):
        assert send(world, "gpu-1", "heartbeat", claim, *lines) == 200
    assert texts(world, claim) == ["one", "two", "three"]
    assert send(world, "gpu-1", "heartbeat", claim, "three", "four", omitted=2) == 200
    assert (texts(world, claim), read(world, claim)["omittedLines"]) == (["three", "four"], 2)


def test_bounds_are_those_of_every_log(world: ApiWorld) -> None:
    """Long lines are cut, the latest are kept, the others counted; lines below the level are left out."""
    world.offer("a")
    claim = world.claim("gpu-1")
    send(world, "gpu-1", "heartbeat", claim, {"text": "quiet", "level": "DEBUG"}, {"text": "odd", "level": "NOTICE"})
    assert texts(world, claim) == ["odd"]
    send(world, "gpu-1", "heartbeat", claim, *[str(number) for number in range(MAX_LINES + 7)], omitted=3)
    found = read(world, claim)
    assert (found["omittedLines"], len(found["lines"])) == (10, MAX_LINES)
    assert found["lines"][-1]["text"] == str(MAX_LINES + 6)
    shouted = {"text": "\N{SNOWMAN}" * 400, "level": "L" * 200, "logger": "\ud83d" * 100}
    assert send(world, "gpu-1", "heartbeat", claim, *[shouted] * 250) == 200
    found = read(world, claim)
    assert found["omittedLines"] + len(found["lines"]) == 250
    assert sum(len(each["text"].encode()) for each in found["lines"]) <= MAX_LOG_BYTES
    assert len(found["lines"][0]["text"].encode()) <= MAX_LINE_BYTES
    assert found["lines"][0]["text"].endswith("…"), "a mark says that it was cut"
    assert send(world, "gpu-1", "heartbeat", claim, "x" * 2**20) == 413, "a request has at most 1 MiB"
    document = world.sim.app.get("a").to_stored_json()
    assert len(document) < 100_000
    assert "\N{SNOWMAN}" not in document, "the owner can read the document"


def test_times_are_those_of_the_claim(world: ApiWorld) -> None:
    """A worker's clock may be wrong: no line is from before the claim or from the future."""
    world.offer("a")
    claim = world.claim("gpu-1")
    world.sim.advance(MINUTE)
    ats = ["2020-01-01T00:00:00Z", "2027-01-01T00:00:30Z", "2090-01-01T00:00:00Z"]
    send(world, "gpu-1", "heartbeat", claim, *[{"text": "x", "at": at} for at in ats], {"text": "x"})
    first, second, *others = [each["at"] for each in read(world, claim)["lines"]]
    assert (first, second) == (claim["startedAt"], ats[1])
    now = about(world.sim.now)
    assert [datetime.fromisoformat(each) for each in others] == [now, now]


_TEXTS = st.lists(st.text("ab\N{SNOWMAN}", max_size=2000), max_size=40)


@given(claims=st.lists(_TEXTS, max_size=6), data=st.data())
def test_reports_in_any_number_and_order_are_one_log(claims: list[list[str]], data: st.DataObject) -> None:
    """However often each claim reports, and in whatever order its reports arrive, the log is that of all lines once."""
    log, whole = RunLog(), RunLog()
    for number, lines in enumerate(claims):
        made = [LogLine(at=START, level="INFO", logger="", text=text) for text in lines]
        sent = data.draw(st.lists(st.integers(0, len(made)), max_size=4))
        for count in [*sent, len(made), *sent]:
            log = log.with_lines_of(str(number), RunLog().add(made[:count]))
        found = RunLog().add(made)
        whole = RunLog(lines=whole.lines, omitted_lines=whole.omitted_lines + found.omitted_lines).add(found.lines)
        assert (log.lines, log.omitted_lines) == (whole.lines, whole.omitted_lines)
    assert log.count == sum(map(len, claims))
