"""Tell systemd that the service is ready, that it is alive, and that it stops (sd_notify(3), a `Type=notify` unit).

Without systemd, it does nothing.
"""

from __future__ import annotations

import os
import re
import socket
import threading
import urllib.request
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_ANSWER_SECONDS: Final = 5.0
"""The time limit of a request to check that the process is alive."""
_LOOK_SECONDS: Final = 1.0
"""The interval at which the main thread checks for signals. One that another thread gets does not wake it."""


class Supervisor:
    """The supervisor that started this process, according to its environment."""

    def __init__(self) -> None:
        self._address = os.environ.get("NOTIFY_SOCKET", "")
        microseconds = os.environ.get("WATCHDOG_USEC", "")
        is_for_us = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self.interval: float | None = None
        """The seconds between two signs of life: half of systemd's time limit (sd_watchdog_enabled(3))."""
        if microseconds.isdigit() and is_for_us:
            self.interval = int(microseconds) / 2e6

    def tell(self, *lines: str) -> None:
        """Tell it something, such as ``READY=1``. A failure to do so is ignored."""
        if not self._address:
            return
        address = re.sub("^@", "\0", self._address)  # an abstract socket
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.sendto("\n".join(lines).encode(), address)
        except OSError:
            return

    def wait(self, url: str, find_trouble: Callable[[], str] = lambda: "") -> None:
        """Wait for a signal. Meanwhile, tell it that this process is alive, as long as it answers requests.

        `find_trouble` returns what keeps it from its work. It is told that, too.
        """
        pause = threading.Event()
        told = ""
        while not pause.wait(self.interval or _LOOK_SECONDS):
            if (trouble := find_trouble()) != told:
                told = trouble
                self.tell(f"STATUS={trouble or f'Serving {url}'}")
            if self.interval is not None and _answers(f"{url}/health"):
                self.tell("WATCHDOG=1")


def _answers(url: str) -> bool:
    try:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # it is on this machine
        with opener.open(url, timeout=_ANSWER_SECONDS) as answer:
            return bool(answer.status == 200)  # noqa: PLR2004
    except OSError:
        return False
