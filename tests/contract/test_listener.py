"""What a listener promises, on Google's Firestore emulator: it notifies of new offers, and at no other time."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.adapters.firestore.production import PREFIX
from tests.conftest import MakeTask
from tests.contract.listener_harness import LATE, NotificationCounter, Proxy, open_listener
from tests.engine.harness import MINUTE, SECOND
from tests.harness import new_project, wait_until

from cloudsched.adapters.firestore import listener as firestore_listener
from cloudsched.adapters.firestore.listener import WATCHED_OFFERS, FirestoreListener, ListenRpc
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.adapters.google import channel
from cloudsched.domain.transitions.commit import Commit
from cloudsched.features.pull.fields import Offer
from cloudsched.features.pull.shared_listener import SharedListener


@pytest.fixture
def project() -> str:
    return new_project()


@pytest.fixture(params=["", PREFIX])
def prefix(request: pytest.FixtureRequest) -> str:
    """With what the collections begin."""
    found: str = request.param
    return found


@pytest.fixture
def firestore(firestore_address: str, project: str, prefix: str) -> Iterator[FirestoreStore]:
    store = FirestoreStore(project=project, emulator=firestore_address, deadline=MINUTE, prefix=prefix)
    yield store
    store.close()


@pytest.fixture(autouse=True)
def _short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream is opened again after milliseconds, and a connection after some, by gRPC itself."""
    monkeypatch.setattr(firestore_listener, "INITIAL_BACKOFF", timedelta(milliseconds=5))
    pauses = (("grpc.initial_reconnect_backoff_ms", 20), ("grpc.min_reconnect_backoff_ms", 20))
    monkeypatch.setattr(channel, "OPTIONS", (*channel.OPTIONS, *pauses))


@pytest.fixture
def listener(firestore_address: str, project: str, prefix: str) -> FirestoreListener:
    return FirestoreListener(project=project, emulator=firestore_address, prefix=prefix)


class RecordingStream:
    """A stream that records which documents arrived, once they were processed."""

    def __init__(self, stream: Any, ids: list[str]) -> None:  # noqa: ANN401 - gRPC's own
        self._stream = stream
        self._ids = ids
        self.cancel = stream.cancel

    def __iter__(self) -> Iterator[Any]:
        for answer in self._stream:
            yield answer
            if answer.document_change.target_ids:
                self._ids.append(answer.document_change.document.name.rpartition("/")[2])


@pytest.fixture
def received_ids(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the documents that arrived and were processed, as often as they arrived."""
    ids: list[str] = []
    listen = ListenRpc.listen
    monkeypatch.setattr(ListenRpc, "listen", lambda *arguments: RecordingStream(listen(*arguments), ids))
    return ids


def test_an_offer_that_comes_back_notifies(
    firestore: FirestoreStore, listener: FirestoreListener, make_task: MakeTask
) -> None:
    """As that of a task which is tried again, resumed or given back by its worker."""
    task = make_task(offer=Offer(queue_key="gpu", order="2 a"))
    with open_listener(listener, ["gpu"]) as bell:
        written = firestore.commit(Commit(task))
        bell.wait()
        written = firestore.commit(Commit(task.model_copy(update={"offer": None}), written))
        firestore.commit(Commit(task, written))
        bell.wait()


def test_it_notifies_for_its_queue_keys_only(
    firestore: FirestoreStore, listener: FirestoreListener, make_task: MakeTask, received_ids: list[str]
) -> None:
    """A worker with skills is notified of tasks that require them, and not of others."""
    with open_listener(listener, ["gpu", "gpu/cuda"]) as bell:
        firestore.commit(Commit(make_task(offer=Offer(queue_key="gpu/rocm", order="2 a"))))
        firestore.commit(Commit(make_task(offer=Offer(queue_key="press", order="2 a"))))
        firestore.commit(Commit(make_task()))
        for written, lane in enumerate(["gpu", "gpu/cuda"], 1):
            firestore.commit(Commit(make_task(id=lane[-4:], offer=Offer(queue_key=lane, order="2 a"))))
            wait_until(lambda last=lane[-4:]: last in received_ids, "the last one was not told of")  # type: ignore[misc]  # bound here
            assert bell.notifications == written


def test_it_notifies_for_its_owner_only(
    firestore: FirestoreStore, listener: FirestoreListener, make_task: MakeTask, received_ids: list[str]
) -> None:
    """Offers of other owners cost no reads."""
    with open_listener(listener, ["gpu"], "ada") as bell:
        for number, owner in enumerate(["bob", "bob", "ada"]):
            offer = Offer(queue_key="gpu", order="2 a")
            firestore.commit(Commit(make_task(id=f"{owner}{number}", owner=owner, offer=offer)))
        wait_until(lambda: "ada2" in received_ids, "the last one was not told of")
        assert bell.notifications == 1
    assert set(received_ids) == {"ada2"}


def test_it_does_not_notify_without_new_offers(
    firestore: FirestoreStore, listener: FirestoreListener, make_task: MakeTask, received_ids: list[str]
) -> None:
    """Claims, heartbeats, tasks without a pull queue and offers already notified make no worker poll."""
    backlog = [make_task(id=f"t{number}", offer=Offer(queue_key="gpu", order=f"2 {number}")) for number in range(10)]
    versions = [firestore.commit(Commit(task)) for task in backlog]
    with open_listener(listener, ["gpu"]) as bell:
        elsewhere = make_task()
        written = firestore.commit(Commit(elsewhere))
        for _ in range(5):
            written = firestore.commit(Commit(elsewhere, written))
        firestore.commit(Commit(backlog[0].model_copy(update={"offer": None}), versions[0]))
        firestore.commit(Commit(make_task(id="last", offer=Offer(queue_key="gpu", order="2 z"))))
        wait_until(lambda: "last" in received_ids, "the last one was not told of")
        assert bell.notifications == 1


def test_a_backlog_costs_few_reads_and_hides_no_new_offer(
    firestore: FirestoreStore, listener: FirestoreListener, make_task: MakeTask, received_ids: list[str]
) -> None:
    """Firestore bills each document that it sends: a few at first, then only new ones, whatever their order."""
    for number in range(300):
        firestore.commit(Commit(make_task(offer=Offer(queue_key="gpu", order=f"2 {number:03}"))))
    with open_listener(listener, ["gpu"]) as bell:
        assert len(received_ids) == WATCHED_OFFERS < 10
        for written, place in enumerate(["0 first", "2 150", "9 last"], 1):
            firestore.commit(Commit(make_task(id=place[2:], offer=Offer(queue_key="gpu", order=place))))
            wait_until(lambda last=place[2:]: last in received_ids, "the last one was not told of")  # type: ignore[misc]  # bound here
            assert bell.notifications == written
            # The emulator sends all of the window again after any write; the service sends the one that is new.
            assert len(received_ids) <= WATCHED_OFFERS * (1 + written)


def test_a_broken_stream_is_reopened_and_notifies(
    firestore_address: str, project: str, prefix: str, firestore: FirestoreStore, make_task: MakeTask
) -> None:
    """An offer may have been missed: its worker polls, also after an outage. Later ones are notified as before."""
    with Proxy(firestore_address) as proxy:
        listener = FirestoreListener(project=project, emulator=proxy.address, prefix=prefix)
        with open_listener(listener, ["gpu"]) as bell:
            for _ in range(2):
                proxy.cut()
                bell.wait()
                firestore.commit(Commit(make_task(offer=Offer(queue_key="gpu", order="2 a"))))
                bell.wait()
            proxy.is_passable = False
            proxy.cut()
            wait_until(lambda: proxy.refused >= 2, "it was not tried again")
            firestore.commit(Commit(make_task(offer=Offer(queue_key="gpu", order="2 a"))))
            proxy.is_passable = True
            bell.wait()


def test_a_stream_is_replaced_after_its_lifetime(listener: FirestoreListener, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection may die silently, so the listener reconnects regularly."""
    monkeypatch.setattr(firestore_listener, "STREAM_LIFETIME", 0.7 * SECOND)
    monkeypatch.setattr(
        firestore_listener, "MAX_BACKOFF", timedelta(milliseconds=1)
    )  # one that was too late costs that
    with open_listener(listener, ["gpu"]) as bell:
        bell.wait(2)


def test_leaving_the_context_ends_the_thread_at_once(firestore_address: str, project: str) -> None:
    """It does not wait for the deadline."""
    listener = FirestoreListener(project=project, emulator=firestore_address, deadline=LATE)
    before = set(threading.enumerate())
    with open_listener(listener, ["gpu"]):
        assert set(threading.enumerate()) - before
    wait_until(lambda: not set(threading.enumerate()) - before, f"{set(threading.enumerate()) - before} go on")


def test_a_listener_does_not_keep_the_process_alive(firestore_address: str, project: str) -> None:
    """A worker process exits even if it never left the listener's context."""
    script = f"""
import threading
from cloudsched.adapters.firestore.listener import FirestoreListener
received_ids = threading.Event()
context = FirestoreListener(project={project!r}, emulator={firestore_address!r}).listen(["gpu"], None, received_ids.set)
context.__enter__()
assert received_ids.wait(100)
print("received_ids")
threading.context = context  # it is there to the end
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=200, check=False)  # noqa: S603 - ours
    assert (ended.stdout, ended.returncode) == ("received_ids\n", 0), ended.stderr


def test_those_who_share_a_stream_are_told_of_what_came_since(
    firestore: FirestoreStore, listener: FirestoreListener, make_task: MakeTask
) -> None:
    """One who joins a stream that is open already hears of each offer from then on."""
    shared = SharedListener(listener, time.monotonic)
    with open_listener(shared, ["gpu"]) as first:
        second = NotificationCounter()
        with shared.listen(["gpu"], None, second.notify):
            firestore.commit(Commit(make_task(offer=Offer(queue_key="gpu", order="2 a"))))
            first.wait()
            second.wait()
    shared.close()
