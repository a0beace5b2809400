"""Which ends of a user's code are failures of that code, although they are no `Exception`.

`sys.exit()` means to end a process, and a cancelled asyncio task its loop. In a handler, a step or a hook neither is
theirs to end: the process belongs to whoever runs them, so each is an attempt that failed. A key that somebody presses,
a generator that is closed and the signals of our own (`cloudsched.engine.durable.suspend.Suspended`) pass.
"""

from __future__ import annotations

import sys


def is_handler_failure(error: BaseException) -> bool:
    """Whether what has left a user's code is its failure; a group is, if all that it holds are."""
    if isinstance(error, Exception | SystemExit):
        return True
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_handler_failure, error.exceptions))
    asyncio = sys.modules.get("asyncio")  # who has not imported it has raised nothing of its own
    return asyncio is not None and isinstance(error, asyncio.CancelledError)
