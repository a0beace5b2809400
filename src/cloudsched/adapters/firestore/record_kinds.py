"""The kind of a final record: its outcome, and whether it is a call, started late or covers several occurrences.

One index of it has each list of ended executions, and each of their numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.run_counts import OUTCOME_STATUSES, RunOutcome, has_started_late

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cloudsched.domain.documents.execution import Execution
    from cloudsched.engine.ports.search import ExecutionQuery

CALL: Final = "_CALL"
LATE: Final = "_LATE"
SEVERAL: Final = "SKIPPED_SEVERAL"
_KINDS: Final[Mapping[RunOutcome, Sequence[str]]] = {
    RunOutcome.RAN: ("RAN", "RAN_CALL", "RAN_LATE"),
    RunOutcome.FAILED: ("FAILED", "FAILED_CALL", "FAILED_LATE"),
    RunOutcome.SKIPPED: ("SKIPPED", "SKIPPED_CALL", SEVERAL),
}
COUNTED_KINDS: Final[Mapping[str, Sequence[str]]] = {
    "ran": ("RAN", "RAN_LATE"),
    "failed": ("FAILED", "FAILED_LATE"),
    "skipped": ("SKIPPED", SEVERAL),
    "calls": ("RAN_CALL", "FAILED_CALL", "SKIPPED_CALL"),
    "late": ("RAN_LATE", "FAILED_LATE"),
}
"""The kinds that each number of `RunCounts` has."""


def find_kind(record: Execution) -> str:
    """Return the kind of a final record."""
    outcome = next(each for each, statuses in OUTCOME_STATUSES.items() if record.status in statuses)
    if record.called_by is not None:
        return f"{outcome}{CALL}"
    if record.covers is not None and outcome is RunOutcome.SKIPPED:
        return SEVERAL
    return f"{outcome}{LATE}" if has_started_late(record) else str(outcome)


def list_kinds(query: ExecutionQuery, *, is_failure: bool) -> list[str]:
    """Return the kinds of a list that may match: none if the query asks for others."""
    return [
        kind
        for outcome, kinds in _KINDS.items()
        if (outcome is RunOutcome.FAILED) is is_failure
        if query.statuses is None or not set(query.statuses).isdisjoint(OUTCOME_STATUSES[outcome])
        for kind in kinds
        if kind.endswith(LATE) or not query.is_late
    ]
