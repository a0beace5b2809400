"""Properties that are computed on first use, once for all threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from cloudsched.config.imports import require_extra

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class lazy_property(Generic[T]):  # noqa: N801 - used like `property`
    """A property that is computed on first use, once for all threads."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    def __get__(self, parts: Any, owner: type) -> T:  # noqa: ANN401 - any object with a `build_lock`
        if parts is None:
            return cast("T", self)  # as seen from the class, by help() and the like
        with parts.build_lock:
            if self._name not in parts.__dict__:
                with require_extra("This setting"):
                    parts.__dict__[self._name] = self._make(parts)
            return cast("T", parts.__dict__[self._name])
