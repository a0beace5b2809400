"""One stream for all who listen for the same: who is told, and when it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from cloudsched.features.pull.shared_listener import LINGER_SECONDS, MAX_LINGERING, SharedListener


class Streams:
    """A `Listener` that records its open streams, and a clock that a test moves."""

    def __init__(self) -> None:
        self.opened = 0
        self.now = 100.0
        self.open: list[Callable[[], None]] = []
        self.shared = SharedListener(self, lambda: self.now)

    @contextmanager
    def listen(self, queue_keys: Sequence[str], owner: str | None, notify: Callable[[], None]) -> Iterator[None]:  # noqa: ARG002 - the port's
        self.opened += 1
        self.open.append(notify)
        yield
        self.open.remove(notify)

    def poll(self, queue: str = "gpu") -> None:
        with self.shared.listen([queue], None, lambda: None):
            pass


def test_all_who_listen_are_told_by_one_stream() -> None:
    """One who has left is told no more."""
    streams, told = Streams(), list[str]()
    with streams.shared.listen(["gpu", "gpu/cuda"], None, lambda: told.append("first")):
        with streams.shared.listen(["gpu/cuda", "gpu"], None, lambda: told.append("second")):
            (notify,) = streams.open
            notify()
        notify()
    assert told == ["first", "second", "first"]


def test_others_have_a_stream_of_their_own() -> None:
    """Of another queue, and of another owner."""
    streams = Streams()
    with (
        streams.shared.listen(["gpu"], None, lambda: None),
        streams.shared.listen(["gpu"], "ada", lambda: None),
        streams.shared.listen(["cpu"], None, lambda: None),
    ):
        assert len(streams.open) == 3


def test_one_who_comes_back_soon_finds_the_stream_open() -> None:
    """An idle worker's polls, one after the other, cost one stream."""
    streams = Streams()
    for _ in range(20):
        streams.poll()
        streams.now += LINGER_SECONDS / 2
    assert streams.opened == 1


def test_a_stream_that_nobody_used_for_long_is_replaced() -> None:
    """It may be dead. One that is in use stays, however old."""
    streams = Streams()
    with streams.shared.listen(["cpu"], None, lambda: None):
        streams.poll()
        streams.now += 2 * LINGER_SECONDS
        streams.poll()
        assert (streams.opened, len(streams.open)) == (3, 2)


def test_few_streams_stay_open_for_nobody() -> None:
    """However many queues somebody asks for; and none after the end."""
    streams = Streams()
    for number in range(5 * MAX_LINGERING):
        streams.poll(f"queue-{number}")
    assert len(streams.open) <= MAX_LINGERING + 1
    streams.shared.close()
    assert not streams.open
