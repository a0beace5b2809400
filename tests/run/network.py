"""No network but loopback: what an index, a certificate store or a stranger's release says decides no test by chance.

Where the kernel allows it (Linux, as root, as in CI), a run and all that it starts see no other network. A test that
asks the world does so within `ask_world`, and belongs to `--all`.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

_WORLD = "CLOUDSCHED_TEST_WORLD"
"""Names the network that the run came from: by the process that cut it off, and holds it open."""
_CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS = 0x8914
_IFF_UP, _IFF_RUNNING = 0x1, 0x40


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Cut the network off before any other process is started; those of xdist inherit what their parent has."""
    if hasattr(config, "workerinput") or config.option.collectonly or is_cut_off() or sys.platform != "linux":
        return
    world = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        _call("unshare", _CLONE_NEWNET)
    except PermissionError:
        os.close(world)
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as loopback:
        fcntl.ioctl(loopback, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP | _IFF_RUNNING))
    os.environ[_WORLD] = f"/proc/{os.getpid()}/fd/{world}"


def pytest_report_header() -> str:
    """Say which network the tests have, since a run that has all of it does not show that it needs none."""
    return f"network: {'loopback alone' if is_cut_off() else 'all of it; only root can cut it off, on Linux'}"


def is_cut_off() -> bool:
    """Return whether this process sees loopback alone."""
    return _WORLD in os.environ


@contextmanager
def ask_world() -> Iterator[None]:
    """Give this thread, and what it starts, the network of the machine; a failure says on which day it asked."""
    try:
        if not is_cut_off():
            yield
            return
        cut_off = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        world = os.open(os.environ[_WORLD], os.O_RDONLY)
        try:
            _call("setns", world, _CLONE_NEWNET)
            yield
        finally:
            _call("setns", cut_off, _CLONE_NEWNET)
            os.close(cut_off)
            os.close(world)
    except (Exception, pytest.fail.Exception) as error:
        error.add_note(f"This asked the world as it was on {datetime.now(UTC).date()}: somebody's release may be why.")
        raise


def _call(name: str, *arguments: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
