"""The executor accepts only unchanged dispatches that it signed itself, with a secret that is still valid."""

from __future__ import annotations

import hmac
import json
import logging
import re
import tracemalloc
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import try_each
from tests.engine.harness import DAY, MINUTE, SECOND

from cloudsched import App, Schedule, Settings, Task, TaskDraft
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.edits import new_task
from cloudsched.domain.transitions.planning import stamp
from cloudsched.domain.transitions.wakeups import HORIZON, Dispatch, executor_wakeups
from cloudsched.engine.signed_dispatches import (
    HOP_MARGIN,
    SigningKeys,
    dispatch_or_hop,
    encode_dispatch,
    open_dispatch,
    parse_dispatch,
)
from cloudsched.errors import InvalidInput, Misconfigured, StoreUnavailable, Unauthenticated
from cloudsched.testing import START, Simulation

INSTANTS = st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - bounds
IDS = st.from_regex(r"[A-Za-z0-9_-]{1,128}", fullmatch=True).filter(lambda name: not name.startswith("__"))
DISPATCHES = st.builds(
    Dispatch,
    task_id=IDS,
    revision=st.integers(1, 10**6),
    execution_id=INSTANTS.map(stamp),
    scheduled_for=INSTANTS,
    attempt=st.integers(1, 100),
    due_at=INSTANTS,
    at=st.just(START),
    after=st.just("") | INSTANTS.map(stamp),
    hop=st.integers(0, 500),
    repair=st.integers(0, 500),
    turn_key=st.text(max_size=5),
    turn=st.integers(0, 500),
    suspension_count=st.integers(0, 500),
    trace=st.just(""),
)
OLD, NEW = "the old secret of this test", "the new secret of this test"  # secrets of nothing
app = App(Settings())
runs: list[str] = []


@app.handler("tick")
def tick() -> None:
    runs.append("ran")


@pytest.fixture(name="app")
def empty_app() -> App:
    """Return this module's app, with its list of runs emptied."""
    runs.clear()
    return app


def _enqueue(sim: Simulation) -> tuple[bytes, str]:
    """Create a task and return the body and the token of its dispatch, which is due in five minutes."""
    sim.app.create(handler="tick", schedule=Schedule.after(5 * MINUTE))
    (sent,) = sim.pending()
    return sent.body, sent.token


@given(body=st.binary(), token=st.text())
def test_only_the_right_token_is_accepted(body: bytes, token: str) -> None:
    """Any text other than the token of this body is refused."""
    keys = SigningKeys(NEW)
    keys.verify(body, keys.sign(body))
    if token != keys.sign(body):
        with pytest.raises(Unauthenticated):
            keys.verify(body, token)


@given(body=st.binary(min_size=1), place=st.integers(0), bit=st.integers(0, 7))
def test_a_token_is_valid_for_its_own_body_only(body: bytes, place: int, bit: int) -> None:
    """If a single bit of the body changes, the token is refused."""
    keys = SigningKeys(NEW)
    other = bytearray(body)
    other[place % len(body)] ^= 1 << bit
    with pytest.raises(Unauthenticated):
        keys.verify(bytes(other), keys.sign(body))


def test_the_previous_secret_is_accepted_while_it_is_rotated() -> None:
    """New dispatches are signed with the new secret; old ones, which may wait for weeks, are still accepted."""
    during, after = SigningKeys(NEW, OLD), SigningKeys(NEW)
    assert during.sign(b"x") == after.sign(b"x")
    during.verify(b"x", SigningKeys(OLD).sign(b"x"))
    with pytest.raises(Unauthenticated):
        after.verify(b"x", SigningKeys(OLD).sign(b"x"))


def test_comparison_takes_the_same_time_for_any_wrong_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each secret's token is compared by `hmac.compare_digest`, even if an earlier one matched."""
    compared: list[object] = []
    real = hmac.compare_digest

    def compare_and_note(a: Any, b: Any) -> bool:  # noqa: ANN401 - bytes or text
        compared.append(b)
        return real(a, b)

    monkeypatch.setattr(hmac, "compare_digest", compare_and_note)
    keys = SigningKeys(NEW, OLD)
    keys.verify(b"x", keys.sign(b"x"))
    with pytest.raises(Unauthenticated):
        keys.verify(b"x", "v1=wrong")
    assert len(compared) == 4


@pytest.mark.parametrize("secrets", [("",), ("short",), (NEW, "short"), (NEW, "")])
def test_a_secret_that_can_be_guessed_is_refused(secrets: tuple[str, ...]) -> None:
    """Both secrets need at least 16 characters; the error does not repeat the secret that it refuses."""
    with pytest.raises(Misconfigured, match="CLOUDSCHED_SECRET") as caught:
        SigningKeys(*secrets)
    assert "short" not in str(caught.value)


def test_secrets_are_never_shown(caplog: pytest.LogCaptureFixture, sim: Simulation) -> None:
    """No repr, error, log line, queue body or document contains a secret."""
    caplog.set_level(logging.DEBUG)
    secret = sim.app.container.settings.secret
    body, token = _enqueue(sim)
    sim.advance(5 * MINUTE)
    with pytest.raises(Unauthenticated) as caught:
        sim.app.deliver(body, "v1=" + "0" * 64)
    (task,) = sim.app.tasks().items
    shown = (
        repr(SigningKeys(secret, OLD)),
        repr(sim.app.container.settings),
        str(caught.value),
        caplog.text,
        task.model_dump_json(),
    )
    for text in (*shown, body.decode(), token):
        assert secret not in text
        assert OLD not in text


@pytest.mark.parametrize("token", ["", "v1=", "v1=" + "0" * 64, "é", "\ud800"])
def test_a_wrong_token_runs_nothing(sim: Simulation, token: str) -> None:
    """The dispatch is refused before the store is read."""
    body, _ = _enqueue(sim)
    sim.advance(4 * MINUTE)
    before = sim.counts.copy()
    with pytest.raises(Unauthenticated):
        sim.app.deliver(body, token)
    assert sim.counts.since(before).reads == 0
    assert not runs


BODIES = [b"", b"{", b"[]", b"null", b"5", b'"x"', b"\xff", b"{}", b'{"taskId": "t"}', b"[" * 100_000]


@try_each("body", BODIES)
def test_a_signed_body_that_is_no_dispatch_is_invalid_input(sim: Simulation, body: bytes) -> None:
    """Delivering it again would change nothing, so it is reported as the caller's error, not as an outage."""
    with pytest.raises(InvalidInput):
        sim.app.deliver(body, sim.sign(body))


@given(
    change=st.dictionaries(
        st.sampled_from(["taskId", "executionId", "attempt", "revision", "hop"]),
        st.integers() | st.text(max_size=5),
        min_size=1,
    )
)
def test_an_altered_but_signed_dispatch_runs_nothing_early_or_twice(change: dict[str, object]) -> None:
    """A signed dispatch of an unknown or future task, execution or attempt runs nothing; the real one still runs."""
    runs.clear()
    with Simulation(app) as sim:
        body, _ = _enqueue(sim)
        other = json.dumps({**json.loads(body), **change}).encode()
        with suppress(InvalidInput):
            sim.app.deliver(other, sim.sign(other))
        assert not runs
        sim.advance(5 * MINUTE)
        assert runs == ["ran"]


def test_the_executor_gives_up_after_losing_many_races(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a task changes each time it is read, the delivery fails after a bounded number of reads; the queue retries."""
    body, token = _enqueue(sim)
    sim.clock.advance(5 * MINUTE)
    real = sim.app.container.store.load
    reads: list[str] = []

    def load(task_id: str) -> Any:  # noqa: ANN401 - as the store's
        found = real(task_id)
        assert found
        reads.append(task_id)
        sim.app.container.store.commit(Commit(found.task, found))
        return found

    monkeypatch.setattr(sim.app.container.store, "load", load)
    with pytest.raises(StoreUnavailable, match="changed"):
        sim.app.deliver(body, token)
    assert len(reads) <= 50
    assert not runs
    monkeypatch.undo()
    assert sim.app.deliver(body, token).action == "ran"


def make_task_at(at: datetime, **policy: object) -> Task:
    draft = TaskDraft.of(id="t", handler="h", schedule=at, **policy)
    return new_task(draft, START)


@given(one=DISPATCHES, other=DISPATCHES)
def test_equal_dispatches_have_equal_names(one: Dispatch, other: Dispatch) -> None:
    """Equal content has the same name, whenever it is delivered; different content has another name."""
    assert encode_dispatch(one)[0] == encode_dispatch(one._replace(at=START + 3 * DAY))[0]
    bodies = [json.loads(encode_dispatch(each)[1]) for each in (one, other)]
    assert (encode_dispatch(one)[0] == encode_dispatch(other)[0]) == (
        bodies[0] == bodies[1]
    )  # both are delivered at the same time


@given(dispatch=DISPATCHES)
def test_what_is_sent_is_json(dispatch: Dispatch) -> None:
    """The body is the shortest JSON of what it says, with and without a trace; the name does not depend on that."""
    for trace in ("", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"):
        name, body = encode_dispatch(dispatch, trace)
        wire = json.loads(body)
        assert (name, wire.get("trace", "")) == (encode_dispatch(dispatch)[0], trace)
        assert body == json.dumps(wire, separators=(",", ":")).encode()
        assert parse_dispatch(wire) == dispatch._replace(trace=trace)


@given(dispatch=DISPATCHES)
def test_a_name_is_valid_in_cloud_tasks_and_begins_with_a_hash(dispatch: Dispatch) -> None:
    """Letters, digits, hyphens and underscores, at most 500; evenly spread from the first character on."""
    assert re.fullmatch(r"[0-9a-f]{32}-[A-Za-z0-9_-]{1,128}", encode_dispatch(dispatch)[0])


@try_each(
    "field",
    [
        "task_id",
        "revision",
        "execution_id",
        "attempt",
        "due_at",
        "after",
        "hop",
        "repair",
        "suspension_count",
        "turn_key",
        "turn",
    ],
)
def test_each_part_of_a_dispatch_changes_its_name(field: str) -> None:
    """If one were missing, the queue would mistake a dispatch for a duplicate of another, and drop it."""
    plain = Dispatch("t", 1, "e", START, 1, START, START)
    other: dict[str, Any] = {"task_id": "u", "execution_id": "f", "due_at": START + timedelta(1)}
    other |= {"after": "x", "turn_key": "k"}
    assert encode_dispatch(plain._replace(**{field: other.get(field, 7)}))[0] != encode_dispatch(plain)[0]


@given(distance=st.timedeltas(timedelta(0), timedelta(days=365 * 60)))
def test_a_chain_of_hops_arrives_exactly_at_the_instant(distance: timedelta) -> None:
    """Each hop is at most 30 days long, comes nearer and has its own name, and the last one is on time."""
    task = make_task_at(START + distance + SECOND)
    (wake,) = executor_wakeups(task)
    now, names = START, set()
    for hop in range(distance // HORIZON + 2):
        dispatch = dispatch_or_hop(task, wake, now, hop=hop)
        assert hop or dispatch == dispatch_or_hop(task, wake, now), "the first of a chain counts from zero"
        assert now <= dispatch.at <= now + 30 * DAY
        is_hop = dispatch.at < wake.due_at
        assert not is_hop or wake.due_at - dispatch.at >= HOP_MARGIN, "a late hop must not delay the task"
        names.add(encode_dispatch(dispatch)[0])
        assert len(names) == hop + 1
        now = dispatch.at
        if now >= wake.due_at:
            break
    assert now == wake.due_at
    assert len(names) == max(1, -(-(wake.due_at - START) // HORIZON))


@try_each(
    "change",
    [
        {"taskId": 5},
        {"scheduledFor": "soon"},
        {"scheduledFor": "2027-01-01T00:00:00"},
        {"dueAt": "2027-01-01T00:00:00"},
        {"at": "2027-01-01T00:00:00"},
        {"at": 7},
        {"attempt": "1"},
        {"attempt": True},
        {"hop": -1},
        {"lockGrant": "1"},
        {"revision": None},
    ],
)
def test_a_body_that_is_no_dispatch_is_refused(change: dict[str, object]) -> None:
    """Each field is checked, and any invalid body raises ValueError."""
    plain = json.loads(encode_dispatch(Dispatch("t", 1, "e", START, 1, START, START))[1])
    without = {key: plain[key] for key in plain if key not in change}
    for body in ({**plain, **change}, *([without] if without != plain else [])):  # lockGrant may be left out
        with pytest.raises(ValueError, match=r"a dispatch|are|name|Invalid"):
            parse_dispatch(body)


def test_what_a_dispatch_says_is_not_kept(sim: Simulation) -> None:
    """The parser would keep thousands of texts, which never come again."""
    sent, _ = _enqueue(sim)
    id_ = json.loads(sent)["taskId"].encode()
    keys, bodies = SigningKeys(NEW), [sent.replace(id_, b"task-%d" % number) for number in range(1000)]
    signed = [(body, keys.sign(body)) for body in bodies]
    tracemalloc.start()
    for body, token in signed:
        open_dispatch(body, token, keys)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 30 * len(bodies)
