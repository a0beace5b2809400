"""The thread of a handler: requests from any other would be recorded in a different order each time."""

from __future__ import annotations

import threading

from cloudsched.engine.durable.step_attempt import in_step_attempt
from cloudsched.errors import WorkflowError


class HandlerThread:
    """Knows which threads may request journal entries: any until `bind` is called."""

    def __init__(self) -> None:
        self._allowed = set[int]()

    def bind(self) -> None:
        """Note that the handler runs in this thread, the only one that may request journal entries."""
        self._allowed = {threading.get_ident()}

    def allow(self, thread: int) -> None:
        """Let another thread request entries, too."""
        self._allowed.add(thread)

    def require_own(self, what: str) -> None:
        """Check that the request comes from the thread of the handler or of its step.

        Raises:
            WorkflowError: It does not.
        """
        if not self._allowed or threading.get_ident() in self._allowed or in_step_attempt():
            return
        raise WorkflowError(
            f"{what} is requested in another thread than the handler's own, so its order might differ in a replay. "
            "Request it in the handler and pass the result to its threads. To run work in parallel, use ctx.call "
            "and ctx.gather."
        )
