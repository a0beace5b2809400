"""Which exceptions raised by user code count as its failure, although they do not derive from `Exception`.

`sys.exit()` raises `SystemExit`, and a cancelled asyncio task raises `CancelledError`. A handler, step or hook does not
own the process or event loop that it runs in, so either one only fails the attempt. `KeyboardInterrupt`,
`GeneratorExit` and our own control flow (`cloudsched.engine.durable.suspend.Suspended`) propagate.
"""

from __future__ import annotations

import sys


def is_handler_failure(error: BaseException) -> bool:
    """Whether an exception raised by user code is a failure of that code; a group is if all of its members are."""
    if isinstance(error, Exception | SystemExit):
        return True
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_handler_failure, error.exceptions))
    asyncio = sys.modules.get("asyncio")  # if it was never imported, nothing raised its CancelledError
    return asyncio is not None and isinstance(error, asyncio.CancelledError)
