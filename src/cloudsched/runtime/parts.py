"""What an app runs on: a container of parts, which a test or the local stack may replace for a time."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from cloudsched.engine.handlers.registry import Registry
from cloudsched.runtime.container import Container

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self, Unpack

    from cloudsched.config.settings import Settings
    from cloudsched.runtime.factories import Parts


class ReplaceableParts:
    """Has a container, and can be given another one.

    Attributes:
        container: Its store, clock, executor and so on, for code that runs it.
    """

    def __init__(self, settings: Settings | None = None, **parts: Unpack[Parts]) -> None:
        self.container = Container(Registry(), settings, **parts)

    @contextmanager
    def override(self, settings: Settings | None = None, **parts: Unpack[Parts]) -> Iterator[Self]:
        """Replace the app's parts until the block ends, as a test, a simulation or the local stack does.

        Code that has imported the app sees the replacements too. Afterwards the app has its earlier parts again; the
        replacements are not closed.
        """
        before = self.container
        if "language_model" not in parts:
            parts["language_model"] = before.given_model
        self.container = Container(before.registry, settings, **parts)
        try:
            yield self
        finally:
            self.container = before

    def close(self) -> None:
        """Close the store, the queue and a remote clock, if they were opened."""
        self.container.close()
