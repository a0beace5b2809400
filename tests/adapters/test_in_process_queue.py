"""What the in-process queue promises beyond the port: precision, threads that survive, a bounded memory."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from tests.harness import WAIT_SECONDS, in_steps, wait_until

from cloudsched.adapters import in_process_queue
from cloudsched.adapters.clocks import ManualClock, SystemClock
from cloudsched.adapters.in_process_queue import InProcessDispatcher
from cloudsched.domain.documents.policy import Priority
from cloudsched.engine.concurrency import service_threads
from cloudsched.engine.ports.procedure import LongCall, Pause, Procedure, StoreCommit
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.errors import QueueUnavailable

NOW = datetime(2026, 1, 1, 9, tzinfo=UTC)
"""In the past by the real clock, so due at once."""


def envelope(name: str, at: datetime = NOW) -> QueueMessage:
    return QueueMessage(name, at, name.encode(), "token")


def send(dispatcher: InProcessDispatcher, count: int) -> None:
    """Create dispatches with the names of numbers from 1 on, all due."""
    for number in range(1, count + 1):
        dispatcher.create(envelope(str(number)))


def settle(dispatcher: InProcessDispatcher) -> None:
    wait_until(lambda: dispatcher.pending == 0, "all are accepted")


def serve(deliver: Callable[[bytes, str], object], workers: int = 1) -> InProcessDispatcher:
    """Return a queue on the real clock, for deliveries of one step."""
    return InProcessDispatcher(SystemClock(), in_steps(deliver), workers=workers)


def collector(count: int) -> tuple[list[tuple[datetime, bytes]], threading.Event, Callable[[bytes, str], None]]:
    received: list[tuple[datetime, bytes]] = []
    done = threading.Event()

    def deliver(body: bytes, _: str) -> None:
        received.append((datetime.now(UTC), body))
        if len(received) == count:
            done.set()

    return received, done, deliver


def test_each_comes_at_its_instant_on_the_real_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """None too early, and none only when the clock is read again, or after one that was the next when it was created.

    The benchmark says how punctual they are.
    """
    monkeypatch.setattr(in_process_queue, "CLOCK_CHECK_SECONDS", 10 * WAIT_SECONDS)
    received, done, deliver = collector(50)
    with InProcessDispatcher(SystemClock(), in_steps(deliver)) as dispatcher:
        begin = datetime.now(UTC) + timedelta(milliseconds=50)
        dispatcher.create(envelope("later", begin + timedelta(days=1)))
        for number in reversed(range(50)):
            dispatcher.create(envelope(str(number), begin + timedelta(milliseconds=5 * number)))
        assert done.wait(WAIT_SECONDS)
    assert all(at >= begin + timedelta(milliseconds=5 * int(body)) for at, body in received)


def test_a_clock_that_is_set_forward_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_process_queue, "CLOCK_CHECK_SECONDS", 0.01)
    received, done, deliver = collector(1)
    clock = ManualClock(NOW)
    with InProcessDispatcher(clock, in_steps(deliver)) as dispatcher:
        dispatcher.create(envelope("one", NOW + timedelta(days=30)))
        wait_until(lambda: bool(dispatcher._has_work._waiters), "it waits by the clock as it was")  # type: ignore[attr-defined]  # noqa: SLF001 - of the condition
        clock.advance(timedelta(days=31))
        assert done.wait(WAIT_SECONDS)
    assert len(received) == 1


def test_a_handler_cannot_end_a_worker_thread() -> None:
    done = threading.Event()
    calls: list[bytes] = []

    def deliver(body: bytes, _: str) -> None:
        calls.append(body)
        if len(calls) <= 3:
            raise SystemExit
        done.set()

    with serve(deliver) as dispatcher:
        send(dispatcher, 3)
        assert done.wait(WAIT_SECONDS)


def test_closing_waits_for_deliveries_in_progress_and_drops_the_rest() -> None:
    began, release, finished = threading.Event(), threading.Event(), list[bytes]()

    def deliver(body: bytes, _: str) -> None:
        began.set()
        release.wait(WAIT_SECONDS)
        finished.append(body)

    def takes(name: str) -> bool:
        try:
            dispatcher.create(envelope(name))
        except QueueUnavailable:
            return False
        return True

    dispatcher = serve(deliver)
    dispatcher.create(envelope("before the start"))
    dispatcher.start()
    assert began.wait(WAIT_SECONDS)
    assert takes("behind it")
    assert dispatcher.pending == 2
    closer = threading.Thread(target=dispatcher.close)
    closer.start()
    while takes("behind it"):  # the delivery in progress must not end before the queue is closed
        threading.Event().wait(0.001)
    release.set()
    closer.join(WAIT_SECONDS)
    assert finished == [b"before the start"]
    assert not closer.is_alive()


def test_the_executor_may_close_its_own_queue() -> None:
    done = threading.Event()

    def deliver(_: bytes, __: str) -> None:
        assert not dispatcher.stop()  # this delivery goes on
        dispatcher.close()
        done.set()

    dispatcher = serve(deliver, 2)
    dispatcher.start()
    dispatcher.create(envelope("one"))
    assert done.wait(WAIT_SECONDS)
    assert dispatcher.stop()


def test_a_limited_number_of_names_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_process_queue, "MAX_REMEMBERED_NAMES", 10)
    received, done, deliver = collector(30)
    with serve(deliver) as dispatcher:
        send(dispatcher, 30)
        assert done.wait(WAIT_SECONDS)
        settle(dispatcher)
        dispatcher.create(envelope("30"))
        dispatcher.create(envelope("1"))
        wait_until(lambda: len(received) == 31, "the name that was forgotten is delivered again")
    assert received[30][1] == b"1"


def test_one_call_after_the_other_uses_a_few_threads() -> None:
    """Each thread that works fills a heap of its own, which keeps its size: 64 of them took 100 MB more than three."""
    threads, done = set[int](), threading.Event()

    def deliver(_: bytes, __: str) -> None:
        threads.add(threading.get_ident())
        done.set()

    with serve(deliver, 64) as dispatcher:
        for number in range(150):
            done.clear()
            dispatcher.create(envelope(str(number)))
            assert done.wait(WAIT_SECONDS)
            settle(dispatcher)
    assert len(threads) <= 16


def test_an_idle_thread_holds_nothing_of_its_last_call() -> None:
    """A task may have a megabyte, and there are 64 threads."""

    class Held:
        def __call__(self) -> None: ...

    made: list[weakref.ref[Held]] = []

    def plan(_: bytes, __: str) -> Procedure[object]:
        held = Held()
        made.append(weakref.ref(held))
        result: object = yield LongCall(held)
        return result

    with InProcessDispatcher(SystemClock(), plan, workers=4) as dispatcher:
        send(dispatcher, 10)
        settle(dispatcher)
        wait_until(lambda: not any(each() for each in made), "nothing is held", 5)


def test_urgent_dispatches_come_first_and_then_those_due_earlier() -> None:
    """Of what is due when a thread is free: by priority, by the instant, and by the order of creation."""
    began, go_on, done = threading.Event(), threading.Event(), threading.Event()
    order: list[str] = []

    def deliver(body: bytes, _: str) -> None:
        if body == b"in progress":
            began.set()
            go_on.wait(WAIT_SECONDS)
            return
        order.append(body.decode())
        if len(order) == 6:
            done.set()

    with serve(deliver) as dispatcher:
        dispatcher.create(envelope("in progress"))
        assert began.wait(WAIT_SECONDS)
        for seconds, name in enumerate(("LOW", "NORMAL", "HIGH", "CRITICAL"), 1):
            at = NOW + timedelta(seconds=seconds)
            dispatcher.create(QueueMessage(name, at, name.encode(), "token", Priority(name)))
        dispatcher.create(envelope("NORMAL, earlier", NOW + timedelta(seconds=1)))
        dispatcher.create(envelope("NORMAL, created later", NOW + timedelta(seconds=2)))
        go_on.set()
        assert done.wait(WAIT_SECONDS)
    assert order == ["CRITICAL", "HIGH", "NORMAL, earlier", "NORMAL", "NORMAL, created later", "LOW"]


def test_while_threads_deliver_another_one_watches_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes due during deliveries is delivered beside them, as long as a thread is idle."""
    monkeypatch.setattr(in_process_queue, "CLOCK_CHECK_SECONDS", 10 * WAIT_SECONDS)
    meeting = threading.Barrier(4, timeout=WAIT_SECONDS)
    failures: list[BaseException] = []

    def deliver(_body: bytes, _token: str) -> None:
        try:
            meeting.wait()  # all four have to be under way at the same time
        except threading.BrokenBarrierError as error:
            failures.append(error)

    with serve(deliver, 4) as dispatcher:
        dispatcher.create(envelope("1"))
        dispatcher.create(envelope("2"))
        begin = datetime.now(UTC)
        dispatcher.create(envelope("3", begin + timedelta(milliseconds=20)))
        dispatcher.create(envelope("4", begin + timedelta(milliseconds=40)))
        settle(dispatcher)
    assert not failures


@pytest.mark.parametrize("error", [MemoryError(), SystemExit(1), KeyError("x")], ids=lambda error: type(error).__name__)
def test_what_could_not_be_queued_again_is_taken_again(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """The sweep sends it under the same name, which is forgotten then."""
    monkeypatch.setattr(service_threads, "MAX_PAUSE", 0.01)
    received, done, deliver = collector(1)
    fails = True

    def refuse(body: bytes, token: str) -> None:
        if fails:
            raise ConnectionError
        deliver(body, token)

    dispatcher = serve(refuse, 2)
    put, main = dispatcher._put, threading.current_thread()  # noqa: SLF001 - from inside

    def fail(pending: Any) -> None:  # noqa: ANN401 - handed on
        if fails and threading.current_thread() is not main:
            raise type(error)(*error.args)
        put(pending)

    monkeypatch.setattr(dispatcher, "_put", fail)
    with dispatcher:
        dispatcher.create(envelope("one"))
        settle(dispatcher)
        fails = False
        dispatcher.create(envelope("one"))
        assert done.wait(WAIT_SECONDS)
    assert len(received) == 1


def test_a_call_that_takes_long_holds_up_nobody() -> None:
    """As many calls as there may be wait at the same time, although the first of a name are made by one thread."""
    meeting = threading.Barrier(32, timeout=WAIT_SECONDS)
    met: list[int] = []
    deliver = in_steps(lambda _body, _token: met.append(meeting.wait()), "one handler")
    with InProcessDispatcher(SystemClock(), deliver) as dispatcher:
        send(dispatcher, 32)
        wait_until(lambda: len(met) == 32, "all of them were under way together")
        settle(dispatcher)


def test_closing_waits_for_a_call_that_the_leading_thread_has_left() -> None:
    began, release = threading.Event(), threading.Event()
    ended: list[bytes] = []

    def deliver(body: bytes, _: str) -> None:
        if body == b"slow":
            began.set()
            release.wait(WAIT_SECONDS)
        ended.append(body)

    dispatcher = InProcessDispatcher(SystemClock(), in_steps(deliver, "one handler"), workers=2)
    dispatcher.start()
    dispatcher.create(envelope("slow"))
    assert began.wait(WAIT_SECONDS)
    dispatcher.create(envelope("quick"))
    wait_until(lambda: ended == [b"quick"], "another thread leads")
    assert not dispatcher.stop(timedelta(milliseconds=50))
    release.set()
    assert dispatcher.stop(timedelta(seconds=WAIT_SECONDS))
    assert ended == [b"quick", b"slow"]


class Committing:
    """A store that commits numbers together, and a delivery that commits the number in its body."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.answers: dict[bytes, object] = {}
        self.refuses: Callable[[int], Exception | None] = lambda _: None

    def commit(self, numbers: Sequence[Any]) -> list[Any]:
        self.groups.append(list(numbers))
        return [self.refuses(each) or -each for each in numbers]

    def deliver(self, body: bytes, _token: str) -> Procedure[None]:
        self.answers[body] = yield StoreCommit(Mock(), int(body))  # type: ignore[arg-type]  # a store of numbers


def test_deliveries_that_are_due_together_commit_together() -> None:
    """Each hears of its own commit; one that is refused is the only one that comes again."""
    store = Committing()
    refused = [KeyError()]
    store.refuses = lambda number: refused.pop() if number == 7 and refused else None
    dispatcher = InProcessDispatcher(SystemClock(), store.deliver, workers=32, commit=store.commit)
    send(dispatcher, 32)
    with dispatcher:
        settle(dispatcher)
    assert store.answers == {str(number).encode(): -number for number in range(1, 33)}
    assert [sorted(each) for each in store.groups] == [list(range(1, 33)), [7]]


@pytest.mark.parametrize(
    "error", [OSError(), MemoryError(), SystemExit(1), None], ids=["OSError", "MemoryError", "SystemExit", "too few"]
)
def test_whatever_the_commits_raise_all_of_them_come_again(
    monkeypatch: pytest.MonkeyPatch, error: BaseException | None
) -> None:
    """Also if some have no answer: none is forgotten, and closing does not wait for it."""
    monkeypatch.setattr(in_process_queue, "INITIAL_BACKOFF", timedelta(milliseconds=1))
    store, fails = Committing(), [True]

    def commit(numbers: Sequence[Any]) -> list[Any]:
        if not fails:
            return store.commit(numbers)
        fails.clear()
        if error is None:
            return store.commit(numbers)[:1]
        raise error

    dispatcher = InProcessDispatcher(SystemClock(), store.deliver, workers=4, commit=commit)
    send(dispatcher, 4)
    dispatcher.start()
    settle(dispatcher)
    assert dispatcher.stop(timedelta(seconds=WAIT_SECONDS))
    assert len(store.answers) == 4


def test_what_memory_ends_for_is_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_threads, "MAX_PAUSE", 0.01)
    received, done, deliver = collector(1)
    usual, fails = in_process_queue._Delivery, [True]  # noqa: SLF001 - from inside

    def begin(pending: Any) -> Any:  # noqa: ANN401 - handed on
        if fails:
            fails.clear()
            raise MemoryError
        return usual(pending)

    monkeypatch.setattr(in_process_queue, "_Delivery", begin)
    with InProcessDispatcher(SystemClock(), in_steps(deliver)) as dispatcher:
        dispatcher.create(envelope("one"))
        assert done.wait(WAIT_SECONDS)
    assert len(received) == 1


def test_a_commit_does_not_wait_for_all_that_is_due() -> None:
    """Only for what is taken once: a thousand dispatches that turn out to be out of date come after it."""
    passed: list[bytes] = []
    passed_before: list[int] = []

    def deliver(body: bytes, _token: str) -> Procedure[None]:
        if body == b"commits":
            yield StoreCommit(Mock(), 1)  # type: ignore[arg-type]  # a store of numbers
            passed_before.append(len(passed))
        passed.append(body)

    store = Committing()
    dispatcher = InProcessDispatcher(SystemClock(), deliver, workers=4, commit=store.commit)
    dispatcher.create(envelope("commits"))
    send(dispatcher, 1000)
    with dispatcher:
        settle(dispatcher)
    assert len(passed) == 1001
    assert passed_before[0] < 10


def test_slow_handlers_are_called_before_all_are_committed() -> None:
    """So they do not all end at once, and the leading thread has something to do while they wait."""
    events: list[str] = []

    def commit(numbers: Sequence[Any]) -> list[Any]:
        events.append("commit")
        return list(numbers)

    def deliver(body: bytes, _token: str) -> Procedure[None]:
        yield StoreCommit(Mock(), int(body))  # type: ignore[arg-type]  # a store of numbers
        events.append("call")
        yield LongCall(lambda: None, "slow")

    dispatcher = InProcessDispatcher(SystemClock(), deliver, workers=32, commit=commit)
    dispatcher._slow["slow"] = float("inf"), 1.0  # noqa: SLF001 - as if one had taken long
    send(dispatcher, 32)
    with dispatcher:
        settle(dispatcher)
    assert events == 4 * ["commit", *8 * ["call"]]


def test_closing_needs_a_thread_that_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """While it pauses it is not lost: the other one leads, and a call in progress needs another thread."""
    monkeypatch.setattr(service_threads, "FIRST_PAUSE", 0.5)
    received, _done, deliver = collector(1)

    def refuse(body: bytes, token: str) -> None:
        if body == b"refused":
            raise ConnectionError
        deliver(body, token)

    dispatcher = serve(refuse)
    put, main = dispatcher._put, threading.current_thread()  # noqa: SLF001 - from inside

    def fail(pending: Any) -> None:  # noqa: ANN401 - handed on
        if threading.current_thread() is not main:
            raise MemoryError
        put(pending)

    monkeypatch.setattr(dispatcher, "_put", fail)
    dispatcher.start()
    dispatcher.create(envelope("refused"))
    settle(dispatcher)
    dispatcher.create(envelope("one"))
    wait_until(lambda: dispatcher._calls, "it waits for a thread")  # noqa: SLF001 - from inside
    assert dispatcher.stop(timedelta(seconds=WAIT_SECONDS))
    assert [body for _, body in received] == [b"one"]


def test_the_first_long_call_of_a_name_says_so_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not when it ends, which may be in an hour: the leading thread would be held up by each call until then."""
    monkeypatch.setattr(in_process_queue, "FIRST_PAUSE", WAIT_SECONDS)
    monkeypatch.setattr(in_process_queue, "MAX_PAUSE", WAIT_SECONDS)
    meeting = threading.Barrier(17, timeout=WAIT_SECONDS)
    leaders: list[threading.Thread] = []

    def deliver(_body: bytes, _token: str) -> None:
        if dispatcher._leader is threading.current_thread():  # noqa: SLF001 - from inside
            leaders.append(threading.current_thread())
        meeting.wait()

    dispatcher = InProcessDispatcher(SystemClock(), in_steps(deliver, "one handler"))
    with dispatcher:
        send(dispatcher, 16)
        meeting.wait()
    assert len(leaders) == 1


def test_the_leader_calls_nothing_itself_while_nobody_could_relieve_it() -> None:
    """All other threads are in calls, such as hooks: commits would wait for whatever it calls."""
    hook, handler, is_in_hook = threading.Event(), threading.Event(), threading.Event()
    store = Committing()

    def wait_in_hook() -> None:
        is_in_hook.set()
        hook.wait(WAIT_SECONDS)

    def deliver(body: bytes, _token: str) -> Procedure[None]:
        yield LongCall(lambda: handler.wait(WAIT_SECONDS) if body == b"blocks" else None, body.decode())
        if body in {b"first hook", b"second hook"}:
            yield LongCall(wait_in_hook)
        elif body == b"commits":
            store.answers[body] = yield StoreCommit(Mock(), 1)  # type: ignore[arg-type]  # a store of numbers

    with InProcessDispatcher(SystemClock(), deliver, workers=2, commit=store.commit) as dispatcher:
        dispatcher.create(envelope("first hook"))
        assert is_in_hook.wait(WAIT_SECONDS)
        at = datetime.now(UTC) + timedelta(milliseconds=50)
        for name in ("commits", "second hook", "blocks"):
            dispatcher.create(envelope(name, at))
        try:
            wait_until(lambda: store.answers, "it is committed", WAIT_SECONDS / 10)
        finally:
            handler.set()
            hook.set()
        settle(dispatcher)


def test_a_call_that_begins_while_the_watching_thread_falls_asleep_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says that it sleeps before it looks for a call, so that one of the two sees the other."""
    go_on, is_called, is_quick_done = threading.Event(), threading.Event(), threading.Event()
    state = {"sleeps": False}
    outcomes: list[bool] = []

    def fall_asleep(_: InProcessDispatcher, value: bool) -> None:  # noqa: FBT001 - a property has no keywords
        if value and not go_on.is_set():  # the leader begins a call at this very moment
            go_on.set()
            is_called.wait(WAIT_SECONDS)
        state["sleeps"] = value

    def call() -> None:
        is_called.set()
        outcomes.append(is_quick_done.wait(WAIT_SECONDS / 10))

    def deliver(body: bytes, _token: str) -> Procedure[None]:
        if body == b"slow":
            go_on.wait(WAIT_SECONDS)
            yield LongCall(call, "slow")
        else:
            is_quick_done.set()

    sleeps = property(lambda _: state["sleeps"], fall_asleep)
    monkeypatch.setattr(InProcessDispatcher, "_sleeps", sleeps, raising=False)
    with InProcessDispatcher(SystemClock(), deliver, workers=2) as dispatcher:
        dispatcher.create(envelope("slow"))
        assert is_called.wait(WAIT_SECONDS)
        dispatcher.create(envelope("quick"))
        settle(dispatcher)
    assert outcomes == [True]


def test_a_pause_holds_up_nobody_and_closing_waits_for_it() -> None:
    ended: list[bytes] = []

    def deliver(body: bytes, _token: str) -> Procedure[None]:
        if body == b"first":
            yield Pause(Mock(), 0.05)
        ended.append(body)

    dispatcher = InProcessDispatcher(SystemClock(), deliver, workers=2)
    dispatcher.create(envelope("first"))
    dispatcher.create(envelope("second"))
    dispatcher.start()
    wait_until(lambda: bool(ended), "the second has its turn meanwhile")
    dispatcher.close()
    assert ended == [b"second", b"first"]


def test_a_head_start_is_all_that_comes_early() -> None:
    clock, moment = ManualClock(NOW), timedelta(milliseconds=1)
    received, done, deliver = collector(1)
    with InProcessDispatcher(clock, in_steps(deliver), head_start=2 * moment) as dispatcher:
        dispatcher.create(envelope("later", NOW + 3 * moment))
        dispatcher.create(envelope("soon", NOW + 2 * moment))
        assert done.wait(WAIT_SECONDS)
    assert [body for _, body in received] == [b"soon"]


@pytest.mark.parametrize("is_hook", [False, True])
def test_calls_that_hang_leave_room_for_others_and_their_threads_end_when_they_return(is_hook: bool) -> None:  # noqa: FBT001 - a case
    """Nothing can stop them, so other threads take the place of theirs. A hook follows the call of its handler."""
    release, begun, done = threading.Event(), threading.Semaphore(0), threading.Event()

    def hang() -> None:
        begun.release()
        release.wait(WAIT_SECONDS)

    def deliver(body: bytes, _: str) -> Procedure[None]:
        if body.startswith(b"hangs"):
            if is_hook:
                yield LongCall(lambda: None, "hang")
            yield LongCall(hang, "" if is_hook else "hang", hangs=lambda: not release.is_set())
        else:
            yield LongCall(done.set, "other")

    with InProcessDispatcher(SystemClock(), deliver, workers=2) as dispatcher:
        before = len(dispatcher._workers)  # noqa: SLF001 - its threads
        for number in range(5):
            dispatcher.create(envelope(f"hangs {number}"))
        for _ in range(5):
            assert begun.acquire(timeout=WAIT_SECONDS)
        dispatcher.create(envelope("other"))
        assert done.wait(WAIT_SECONDS)
        assert not dispatcher.is_busy
        release.set()
        wait_until(lambda: len(dispatcher._workers) == before, "the threads that hung have ended")  # noqa: SLF001 - the same


def test_it_is_busy_when_all_threads_call_handlers_that_have_time_left() -> None:
    release, begun = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        release.wait(WAIT_SECONDS)

    def deliver(_body: bytes, _token: str) -> Procedure[None]:
        yield LongCall(wait, "long")

    with InProcessDispatcher(SystemClock(), deliver, workers=1) as dispatcher:
        assert not dispatcher.is_busy
        dispatcher.create(envelope("long"))
        assert begun.wait(WAIT_SECONDS)
        assert dispatcher.is_busy
        release.set()
