"""What a handler has logged, as it is kept with its run: the latest lines, within bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.document import Instant, WireModel
from cloudsched.domain.documents.json_limits import truncate

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_LINES: Final = 200
MAX_LOG_BYTES: Final = 16 * 1024
"""How many lines of one execution are kept, and how many bytes of text they have together."""
MAX_LINE_BYTES: Final = 1000
"""How many bytes of one line are kept, with the end of its traceback."""
MAX_NAME_BYTES: Final = 80


class LogLine(WireModel):
    """One line that a handler has logged."""

    at: Instant
    level: str
    """``INFO``, ``WARNING``, ``ERROR`` or what else its level is called."""
    logger: str
    """The logger's name."""
    text: str
    """The message, with the end of its traceback if it has one; cut if it is long."""
    attempt: int = 1
    """The attempt that logged it."""

    def cut(self) -> LogLine:
        """Return the line within its bounds, with text that every store can hold."""
        return self.model_copy(
            update={
                "level": truncate(self.level, MAX_NAME_BYTES),
                "logger": truncate(self.logger, MAX_NAME_BYTES),
                "text": truncate(self.text, MAX_LINE_BYTES),
            }
        )


class RunLog(WireModel):
    """The latest lines of one execution."""

    lines: tuple[LogLine, ...] = ()
    left_out: int = 0
    """How many earlier lines are not kept."""

    def add(self, lines: Sequence[LogLine]) -> RunLog:
        """Return the log with more lines at its end, and without the earliest ones if there are too many."""
        kept = [*self.lines, *lines]
        first = max(0, len(kept) - MAX_LINES)
        size = sum(map(_size, kept[first:]))
        while size > MAX_LOG_BYTES:
            size -= _size(kept[first])
            first += 1
        return RunLog(lines=tuple(kept[first:]), left_out=self.left_out + first)


def _size(line: LogLine) -> int:
    return len(line.text.encode("utf-8", "replace")) + len(line.logger) + 40
