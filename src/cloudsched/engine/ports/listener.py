"""The port by which a worker is notified of work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager


class Listener(Protocol):
    """Notifies a worker that there may be new work for it. This is a hint: the worker polls as well.

    * After every change by which an offer appears under one of the queue keys, `notify` is called soon. It may be
      called without a reason too, but not continuously while nothing happens.
    * `notify` is called from another thread, also while the context is being entered. It returns quickly and does not
      raise.
    * A lost connection is opened again, with increasing delays. Then `notify` is called: changes may have been missed.
    * A permanent error (no permission, no index) is logged once. Then `notify` is called every few seconds.
    * Leaving the context ends all threads and calls, quickly. None of the threads keeps a process alive.
    """

    def listen(
        self, queue_keys: Sequence[str], owner: str | None, notify: Callable[[], None]
    ) -> AbstractContextManager[None]:
        """Call `notify`, within the context, about offers under these queue keys, and of this owner if one is given."""
        ...
