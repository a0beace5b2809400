"""Under libfaketime, which refuses each ``time.sleep`` of Python 3.11 (EINVAL) if it sets only the wall clock."""

import threading
import time


def _sleep(seconds: float) -> None:
    threading.Event().wait(seconds)


time.sleep = _sleep  # type: ignore[assignment]  # nothing sleeps for a SupportsIndex
