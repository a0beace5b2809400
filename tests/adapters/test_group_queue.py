"""What a queue promises whose runs share their commits, beyond what every in-process queue does."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

import pytest
from tests.adapters.test_in_process_queue import envelope
from tests.harness import WAIT_SECONDS

from cloudsched.adapters import in_process_queue
from cloudsched.adapters.clocks import SystemClock
from cloudsched.adapters.in_process_queue import MAX_GROUP, GroupDispatcher
from cloudsched.engine.ports import service_threads
from cloudsched.errors import QueueUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudsched.engine.ports.queue import QueueMessage


class Commits:
    """Commits groups as a test says, and records them: the names that were claimed, and those that ended."""

    def __init__(self, handle: Callable[[str], object] = lambda _: None) -> None:
        self.handle = handle
        self.groups: list[tuple[list[str], list[str]]] = []
        self.before: Callable[[list[str], list[str]], object] = lambda _claims, _ends: None
        self.left: dict[str, Callable[[], str | None]] = {}
        """What is left to do after the end of one of these is committed."""
        self.done: list[str] = []
        self._changed = threading.Condition()

    def commit(
        self, messages: Sequence[QueueMessage], ends: Sequence[str]
    ) -> tuple[Sequence[Callable[[], str | None]], Sequence[Callable[[], str | None] | None]]:
        names = [each.name for each in messages]
        self.before(names, list(ends))
        with self._changed:
            self.groups.append((names, list(ends)))
            self.done += [each for each in ends if each not in self.left]
            self._changed.notify_all()
        return [partial(self._call, name) for name in names], [self.left.pop(each, None) for each in ends]

    def _call(self, name: str) -> str:
        self.handle(name)
        return name

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.done) >= count, WAIT_SECONDS)


def open_queue(commits: Commits, workers: int = 4) -> GroupDispatcher[str]:
    return GroupDispatcher(SystemClock(), commits.commit, workers=workers)


def test_what_comes_due_and_ends_during_a_commit_is_the_next_group() -> None:
    """However many wait: they are claimed by one commit, and those that ended are with them."""
    commits, is_committing, may_commit = Commits(), threading.Event(), threading.Event()

    def hold(_claims: list[str], _ends: list[str]) -> None:
        is_committing.set()
        assert may_commit.wait(WAIT_SECONDS)

    commits.before = hold
    with open_queue(commits, workers=8) as queue:
        queue.create(envelope("first"))
        assert is_committing.wait(WAIT_SECONDS)
        for number in range(5):
            queue.create(envelope(str(number)))
        may_commit.set()
        commits.wait_for(6)
    assert commits.groups[0] == (["first"], [])
    assert commits.groups[1][0] == ["0", "1", "2", "3", "4"]
    assert sorted(commits.done) == ["0", "1", "2", "3", "4", "first"]


def test_no_more_is_claimed_than_threads_are_free() -> None:
    """What is claimed is called at once, so its lease does not run down in a queue; the rest stays unclaimed."""
    may_end, calling = threading.Event(), threading.Semaphore(0)

    def handle(_: str) -> None:
        calling.release()
        assert may_end.wait(WAIT_SECONDS)

    commits = Commits(handle)
    with open_queue(commits, workers=3) as queue:
        for number in range(10):
            queue.create(envelope(str(number)))
        for _ in range(3):
            assert calling.acquire(timeout=WAIT_SECONDS)
        assert queue.inspect().due == 7
        assert sum(len(claims) for claims, _ in commits.groups) == 3
        may_end.set()
        commits.wait_for(10)


def test_a_group_has_a_limited_size() -> None:
    """So that none waits long for the others, however many are due."""
    commits, may_commit = Commits(), threading.Event()
    commits.before = lambda *_: may_commit.wait(WAIT_SECONDS)
    with open_queue(commits, workers=3 * MAX_GROUP) as queue:
        for number in range(3 * MAX_GROUP):
            queue.create(envelope(str(number)))
        may_commit.set()
        commits.wait_for(3 * MAX_GROUP)
    assert max(len(each) for group in commits.groups for each in group) <= MAX_GROUP


def test_a_commit_that_fails_is_repeated_for_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it raises: the thread goes on, and those that were claimed and those that ended are delivered again."""
    monkeypatch.setattr(in_process_queue, "INITIAL_BACKOFF", in_process_queue.INITIAL_BACKOFF / 100)
    failures: list[BaseException] = [MemoryError(), SystemExit(), ValueError("broken")]
    commits = Commits()

    def fail(_claims: list[str], ends: list[str]) -> None:
        if failures and (ends or len(failures) > 1):
            raise failures.pop(0)

    commits.before = fail
    with open_queue(commits) as queue:
        queue.create(envelope("1"))
        queue.create(envelope("2"))
        commits.wait_for(2)
    assert sorted(commits.done) == ["1", "2"]
    assert not failures


def test_what_an_end_leaves_to_do_is_done_by_a_thread_that_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by the one that commits; if it fails, the dispatch is delivered again."""
    monkeypatch.setattr(in_process_queue, "INITIAL_BACKOFF", in_process_queue.INITIAL_BACKOFF / 100)
    threads = list[str]()

    def fail() -> None:
        threads.append(threading.current_thread().name)
        raise ConnectionError("not yet")

    commits = Commits()
    commits.left = {"1": fail}
    with open_queue(commits) as queue:
        queue.create(envelope("1"))
        commits.wait_for(1)
    assert [claims for claims, _ in commits.groups if claims] == [["1"], ["1"]]
    assert len(threads) == 1
    assert threads[0].startswith("cloudsched-worker-")


def _takes(queue: GroupDispatcher[str]) -> bool:
    try:
        queue.create(envelope("behind it"))
    except QueueUnavailable:
        return False
    return True


def test_closing_commits_how_what_runs_ends() -> None:
    """What was claimed is called and its end is committed; what was only due is dropped."""
    may_end, is_running = threading.Event(), threading.Event()

    def handle(_: str) -> None:
        is_running.set()
        assert may_end.wait(WAIT_SECONDS)

    commits = Commits(handle)
    queue = open_queue(commits, workers=1)
    queue.start()
    queue.create(envelope("running"))
    assert is_running.wait(WAIT_SECONDS)
    queue.create(envelope("due"))
    closer = threading.Thread(target=queue.close)
    closer.start()
    while _takes(queue):
        threading.Event().wait(0.001)
    may_end.set()
    closer.join(WAIT_SECONDS)
    assert not closer.is_alive()
    assert commits.groups == [(["running"], []), ([], ["running"])]


def test_a_slow_handler_holds_up_no_commit() -> None:
    """While a handler runs, others are claimed and their ends stored."""
    may_end, is_running = threading.Event(), threading.Event()

    def handle(name: str) -> None:
        if name == "slow":
            is_running.set()
            assert may_end.wait(WAIT_SECONDS)

    commits = Commits(handle)
    with open_queue(commits, workers=2) as queue:
        queue.create(envelope("slow"))
        assert is_running.wait(WAIT_SECONDS)
        for number in range(5):
            queue.create(envelope(str(number)))
        commits.wait_for(5)
        may_end.set()
        commits.wait_for(6)


@pytest.mark.parametrize("error", [MemoryError(), SystemExit(1), KeyError("x")], ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("turn", ["_take_call", "_find_due", "_hand_over", "_put"])
def test_whatever_its_threads_raise_all_is_delivered(
    turn: str, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a thread fails, with a group in its hands or without one: it goes on, and nothing is forgotten."""
    monkeypatch.setattr(in_process_queue, "CLOCK_CHECK_SECONDS", 0.01)
    monkeypatch.setattr(in_process_queue, "INITIAL_BACKOFF", in_process_queue.INITIAL_BACKOFF / 100)
    monkeypatch.setattr(service_threads, "MAX_PAUSE", 0.01)
    commits, failures = Commits(), 20
    queue = open_queue(commits)
    real, main = getattr(queue, turn), threading.current_thread()

    def fail(*arguments: object) -> object:
        nonlocal failures
        if failures and threading.current_thread() is not main:
            failures -= 1
            raise type(error)(*error.args)
        return real(*arguments)

    if turn == "_put":  # which is called once a dispatch is delivered again

        def refuse(name: str) -> None:
            if failures:
                raise ConnectionError(name)

        commits.handle = refuse
    monkeypatch.setattr(queue, turn, fail)
    with queue:
        for number in range(30):
            queue.create(envelope(str(number)))
        commits.wait_for(30)
    assert {*commits.done} == {str(number) for number in range(30)}
    assert not failures
