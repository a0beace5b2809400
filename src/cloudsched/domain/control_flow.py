"""What ends a call of user code, and is no failure of it."""

from __future__ import annotations


class ControlFlow(BaseException):
    """Unwinds whatever code it passes through, a handler's too, and is no failure of that code."""
