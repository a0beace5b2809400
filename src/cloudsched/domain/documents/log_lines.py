"""The log of a handler, as it is kept with its run: the latest lines, within bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.document import Instant, WireModel
from cloudsched.domain.documents.json_limits import truncate

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_LINES: Final = 200
MAX_LOG_BYTES: Final = 16 * 1024
"""The most lines of one execution that are kept, and the most bytes of text that they have together."""
MAX_LINE_BYTES: Final = 1000
"""The most bytes of one line that are kept, with the end of its traceback."""
MAX_NAME_BYTES: Final = 80
_ELLIPSIS: Final = "…"


class LogLine(WireModel):
    """One line that a handler has logged."""

    at: Instant
    level: str
    """The name of its level, such as ``INFO``, ``WARNING`` or ``ERROR``."""
    logger: str
    """The logger's name."""
    text: str
    """The message, with the end of its traceback if it has one. It is cut if it is long."""
    attempt: int = 1
    """The attempt that logged it."""

    def cut(self) -> LogLine:
        """Return the line within its bounds, with text that every store can hold."""
        return self.model_copy(
            update={
                "level": truncate(self.level, MAX_NAME_BYTES),
                "logger": truncate(self.logger, MAX_NAME_BYTES),
                "text": _cut(self.text),
            }
        )


class RunLog(WireModel):
    """The latest lines of one execution."""

    lines: tuple[LogLine, ...] = ()
    omitted_lines: int = 0
    """The number of earlier lines that are not kept."""
    claim: str | None = None
    """The claim that added the last lines: the first characters of the hash of its lease token."""
    earlier_lines: int = 0
    """The number of kept lines that other claims added before it."""
    earlier_omitted_lines: int = 0
    """The number of lines of other claims that are not kept."""

    @property
    def count(self) -> int:
        """The number of lines, kept or not."""
        return self.omitted_lines + len(self.lines)

    @property
    def bytes_left(self) -> int:
        """The number of bytes that may be added before the earliest lines are dropped."""
        return MAX_LOG_BYTES - sum(map(_size, self.lines))

    def with_lines_of(self, claim: str, found: RunLog) -> RunLog:
        """Return the log with all that one claim has logged so far, in place of its lines until now.

        If it has more lines already, `found` is older, for example from a delayed request, and nothing
        changes. The lines of other claims stay, as far as there is room.
        """
        before = self
        if claim == self.claim:
            before = RunLog(lines=self.lines[: self.earlier_lines], omitted_lines=self.earlier_omitted_lines)
            if found.count < self.count - before.count:
                return self
        omitted_lines = before.omitted_lines + found.omitted_lines
        whole = RunLog(lines=before.lines, omitted_lines=omitted_lines).add(found.lines)
        dropped = min(len(before.lines), whole.omitted_lines - omitted_lines)
        return RunLog(
            lines=whole.lines,
            omitted_lines=whole.omitted_lines,
            claim=claim,
            earlier_lines=len(before.lines) - dropped,
            earlier_omitted_lines=before.omitted_lines + dropped,
        )

    def add(self, lines: Sequence[LogLine]) -> RunLog:
        """Return the log with more lines at its end, and without the earliest ones if there are too many."""
        kept = [*self.lines, *lines]
        first = max(0, len(kept) - MAX_LINES)
        size = sum(map(_size, kept[first:]))
        while size > MAX_LOG_BYTES:
            size -= _size(kept[first])
            first += 1
        return RunLog(lines=tuple(kept[first:]), omitted_lines=self.omitted_lines + first)


def _cut(text: str) -> str:
    whole = truncate(text, MAX_LINE_BYTES + 4)  # more than may be, even without half a character at its end
    if len(whole.encode()) <= MAX_LINE_BYTES:
        return whole
    return truncate(text, MAX_LINE_BYTES - len(_ELLIPSIS.encode())) + _ELLIPSIS


def _size(line: LogLine) -> int:
    return sum(len(each.encode("utf-8", "replace")) for each in (line.text, line.logger, line.level)) + 40
