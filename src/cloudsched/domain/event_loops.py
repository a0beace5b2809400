"""Blocking calls on an event loop, on which nothing else runs meanwhile."""

from __future__ import annotations

import sys
import warnings

_OWN = __name__.partition(".")[0]
_WRAPPERS = {f"{_OWN}.engine.handlers.typed_calls", f"{_OWN}.domain.call_arguments"}
"""The modules whose functions only hand a call on."""


def warn_if_on_loop(call: str, instead: str) -> None:
    """Warn, at the caller's line, that a blocking method is called on an event loop: what is awaited instead.

    It is called by the method's wrapper. Methods that the package itself calls are not told.
    """
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or asyncio._get_running_loop() is None:  # noqa: SLF001 - documented
        return
    if asyncio.current_task() is None:  # as below Playwright, which stops its loop to call synchronous code
        return
    frame, level = sys._getframe(2), 3  # noqa: SLF001 - whose line is shown
    while frame.f_globals.get("__name__") in _WRAPPERS and frame.f_back is not None:
        frame = frame.f_back
        level = level + 1
    if str(frame.f_globals.get("__name__")).partition(".")[0] != _OWN:
        text = f"{call} blocks the event loop: nothing else runs on it meanwhile. Write: await {instead}"
        warnings.warn(text, RuntimeWarning, stacklevel=level)
