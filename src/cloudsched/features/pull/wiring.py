"""The parts of workers in a container, each made on first use: the queue, their claims, and who listens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.runtime.container import Wiring
from cloudsched.runtime.lazy_property import lazy_property

if TYPE_CHECKING:
    from cloudsched.features.pull.claims import WorkerClaims
    from cloudsched.features.pull.presence import PresenceNotes
    from cloudsched.features.pull.shared_listener import SharedListener
    from cloudsched.features.pull.work_queue import WorkQueue


class PullWiring(Wiring):
    """Makes what hands out work to workers."""

    @lazy_property
    def worker_claims(self) -> WorkerClaims:
        """Renews, releases and ends the claims of workers."""
        from cloudsched.features.pull.claims import WorkerClaims  # noqa: PLC0415 - likewise
        from cloudsched.features.pull.work_queue import THIS_PROCESS  # noqa: PLC0415 - imported only when used

        return WorkerClaims(self.container.engine, self.container.executor, THIS_PROCESS)

    @lazy_property
    def work_queue(self) -> WorkQueue:
        """Claims offered work for workers."""
        from cloudsched.features.pull.work_queue import WorkQueue  # noqa: PLC0415 - imported only when used

        return WorkQueue(self.container.engine, self.container.seconds or (lambda: 0.0))

    @lazy_property
    def presence(self) -> PresenceNotes:
        """Notes which workers listen."""
        from cloudsched.features.pull.presence import PresenceNotes  # noqa: PLC0415 - imported only when used

        return PresenceNotes(self.container.store, self.container.clock)

    @lazy_property
    def shared_listener(self) -> SharedListener | None:
        """Notifies the claims that wait at the API of new work. None with stores that they must ask."""
        if self.container.listener is None:
            return None
        from cloudsched.features.pull.shared_listener import SharedListener  # noqa: PLC0415 - imported only when used

        return SharedListener(self.container.listener, self.container.seconds or (lambda: 0.0))

    def close(self) -> None:
        """Close the listener that claims share, if one was opened."""
        shared: SharedListener | None = self.__dict__.pop("shared_listener", None)
        if shared is not None:
            shared.close()
