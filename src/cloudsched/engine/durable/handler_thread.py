"""The thread of a handler: requests from any other would be recorded in a different order each time."""

from __future__ import annotations

import threading

from cloudsched.engine.durable.step_attempt import in_step_attempt
from cloudsched.errors import WorkflowError


class HandlerThread:
    """Knows which threads may request journal entries: any until `bind` is called."""

    def __init__(self) -> None:
        self._own: int | None = None
        self._event_loop: int | None = None

    def bind(self) -> None:
        """Note that the handler runs in this thread, the only one that may request journal entries from now on."""
        self._own = threading.get_ident()

    def allow(self, event_loop: int) -> None:
        """Let the thread of the event loop request entries, too."""
        self._event_loop = event_loop

    def require_own(self, what: str) -> None:
        """Check that the request comes from the thread of the handler or of its step.

        Raises:
            WorkflowError: It does not.
        """
        if self._own is None or threading.get_ident() in {self._own, self._event_loop} or in_step_attempt():
            return
        raise WorkflowError(
            f"{what} is requested in another thread than the handler's own, so its order might differ in a replay. "
            "Request it in the handler and pass the result to its threads. To run work in parallel, use ctx.call "
            "and ctx.gather."
        )
