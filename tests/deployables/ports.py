"""Ports that nobody else is given before a process of the test's own listens on them, or while nobody is to."""

from __future__ import annotations

import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def reserved_port() -> Iterator[int]:
    """Hold a port of this machine: who asks the system for any port does not get it, and nobody answers there.

    Who names it may listen on it all the same if they set SO_REUSEADDR, as servers do.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        port: int = holder.getsockname()[1]
        yield port
