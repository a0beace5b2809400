"""Python's garbage collection, around imports."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def pause_collection(*, keeps_all: bool = False) -> Iterator[None]:
    """Do not look for garbage while modules are imported.

    What is imported stays, and to look at it again and again would take a tenth of the time.

    Args:
        keeps_all: Whether never to look at what there is now, either. That is for programs of our own: it keeps
            whatever is garbage already.
    """
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if keeps_all:
            gc.freeze()
        if is_collecting:
            gc.enable()
