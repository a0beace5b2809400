"""What ends a call of user code, and is no failure of it."""

from __future__ import annotations

from cloudsched.errors import Portable


class ControlFlow(Portable, BaseException):
    """Unwinds whatever code it passes through, a handler's too, and is no failure of that code."""
