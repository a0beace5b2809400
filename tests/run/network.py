"""No network but loopback: what an index, a certificate store or a stranger's release says decides no test by chance.

Where the kernel allows it (Linux, as root, as in CI), a run and all that it starts see no other network. Tests that ask
the world belong to `--all`, which has it.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys

import pytest

CUT_OFF = "CLOUDSCHED_TEST_LOOPBACK"
"""Set in the environment of a run that sees loopback alone."""
_CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS = 0x8914
_IFF_UP, _IFF_RUNNING = 0x1, 0x40


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Cut the network off before any other process is started; those of xdist inherit what their parent has."""
    is_free = config.getoption("--all") or config.option.collectonly or sys.platform != "linux"
    if is_free or CUT_OFF in os.environ or ctypes.CDLL(None).unshare(_CLONE_NEWNET) != 0:
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as loopback:
        fcntl.ioctl(loopback, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP | _IFF_RUNNING))
    os.environ[CUT_OFF] = "yes"
