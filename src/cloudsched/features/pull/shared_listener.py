"""Listen once for all who wait for the same work, and keep listening for those who come back soon.

A waiting claim lasts for seconds, and the next one follows at once. To open a stream for each would cost
more than to ask the store.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from cloudsched.engine.ports.listener import Listener

LINGER_SECONDS: Final = 30.0
"""The seconds after the last one has left in which a stream is used again.

An older one may be dead: a function's processor stands still between requests.
"""
MAX_LINGERING: Final = 8
"""The most streams that stay open for nobody."""
_Notify: TypeAlias = Callable[[], None]


class _Stream:
    def __init__(self) -> None:
        self.context: AbstractContextManager[None] | None = None
        self.listening: dict[object, _Notify] = {}
        self.left_at = 0.0

    def notify(self) -> None:
        for notify in tuple(self.listening.values()):  # a copy, made in one step
            notify()


class SharedListener:
    """A `Listener` that opens one stream for all who listen for the same.

    The last ones stay open, until `close`.
    """

    def __init__(self, listener: Listener, monotonic: Callable[[], float]) -> None:
        self._listener = listener
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._streams: dict[tuple[frozenset[str], str | None], _Stream] = {}

    @contextmanager
    def listen(self, queue_keys: Sequence[str], owner: str | None, notify: _Notify) -> Iterator[None]:
        """Call `notify` within the context, as any `Listener` does."""
        key = (frozenset(queue_keys), owner)
        place = object()
        with self._lock:
            stale = self._take_stale()
            stream = self._streams.get(key) or _Stream()
            if stream.context is None:
                context = self._listener.listen(queue_keys, owner, stream.notify)
                context.__enter__()  # if this fails, the next one tries again
                stream.context = context
            self._streams[key] = stream
            stream.listening[place] = notify
        _end(stale)
        try:
            yield
        finally:
            with self._lock:
                stream.left_at = self._monotonic()
                del stream.listening[place]

    def close(self) -> None:
        """End all streams."""
        with self._lock:
            ended = [self._streams.pop(key) for key in tuple(self._streams)]
        _end(ended)

    def _take_stale(self) -> list[_Stream]:
        """Take out the streams that nobody has used for long, or that are too many."""
        idle = [key for key, each in self._streams.items() if not each.listening]
        idle.sort(key=lambda key: self._streams[key].left_at, reverse=True)
        oldest = self._monotonic() - LINGER_SECONDS
        return [
            self._streams.pop(key)
            for number, key in enumerate(idle)
            if number >= MAX_LINGERING or self._streams[key].left_at < oldest
        ]


def _end(streams: Sequence[_Stream]) -> None:
    for each in streams:
        if each.context is not None:
            each.context.__exit__(None, None, None)
