"""The executor accepts only unchanged dispatches that it signed itself, with a secret that is still valid."""

from __future__ import annotations

import hmac
import json
import logging
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import try_each

from cloudsched import App, Schedule, Settings
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.signed_dispatches import SigningKeys
from cloudsched.errors import InvalidInput, Misconfigured, StoreUnavailable, Unauthenticated
from cloudsched.testing import Simulation

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
    sim.app.create(owner="ada", title="Tick", handler="tick", schedule=Schedule.after(timedelta(minutes=5)))
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
    sim.advance(timedelta(minutes=5))
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
    sim.advance(timedelta(minutes=4))
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
        sim.advance(timedelta(minutes=5))
        assert runs == ["ran"]


def test_the_executor_gives_up_after_losing_many_races(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a task changes each time it is read, the delivery fails after a bounded number of reads; the queue retries."""
    body, token = _enqueue(sim)
    sim.clock.advance(timedelta(minutes=5))
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
