"""What stands for a value that is not there yet: using it as that value is refused, in words that say what to write."""

from __future__ import annotations

from typing import NoReturn


class NotAValue:
    """Something that a handler might take for the value that it stands for.

    A question that it answered, such as ``if``, would let a handler go on with an answer that nobody gave.
    """

    def tell_misuse(self) -> str:
        """Return what is wrong with using it as a value, and what to write."""
        raise NotImplementedError

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError(self.tell_misuse())

    def __bool__(self) -> NoReturn:  # noqa: PLE0304 - it has none
        self._refuse()

    def __str__(self) -> NoReturn:  # noqa: PLE0307 - it has none
        self._refuse()

    def __format__(self, spec: str) -> NoReturn:
        self._refuse()

    def __eq__(self, other: object) -> bool:
        self._refuse()

    __hash__ = object.__hash__
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __getitem__ = __iter__ = __contains__ = __len__ = _refuse
