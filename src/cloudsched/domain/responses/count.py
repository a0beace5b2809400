"""A number as it was counted: exact, or the least that it is."""

from __future__ import annotations

from pydantic import Field

from cloudsched.domain.responses.api_responses import ApiResponse


class Count(ApiResponse):
    """The number of what was counted. From the store to the page it is one value, so that no bound is forgotten."""

    value: int = Field(ge=0)
    at_least: bool = False
    """True if there may be more, because counting stopped at a bound."""

    @classmethod
    def up_to(cls, found: int, most: int) -> Count:
        """Return what was found by a count that stops at `most`."""
        return cls(value=found, at_least=found >= most)

    def write(self, one: str, many: str) -> str:
        """Return the number with its noun, such as ``at least 10,000 tasks``."""
        return f"{'at least ' if self.at_least else ''}{self.value:,} {one if self.value == 1 else many}"

    def __add__(self, other: Count) -> Count:
        """Return the number of both."""
        return Count(value=self.value + other.value, at_least=self.at_least or other.at_least)

    def __bool__(self) -> bool:
        """Return whether there is any."""
        return bool(self.value)
