"""A queue that holds only what is due soon, in front of the store: no task is missed between the two."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.local.maintenance import WindowedDispatcher

NOW = datetime(2027, 1, 1, 9, tzinfo=UTC)


class Recorder:
    """A queue that records the dispatches it was given."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.is_closed = False

    def create(self, message: QueueMessage) -> None:
        self.names.add(message.name)

    def close(self) -> None:
        self.is_closed = True


def make_message(name: str, minutes: int) -> QueueMessage:
    return QueueMessage(name, NOW + timedelta(minutes=minutes), b"", "token")


@given(st.lists(st.tuples(st.sampled_from(["commit", "send", "widen", "read"]), st.integers(0, 60)), max_size=60))
def test_a_task_is_queued_by_its_creator_or_by_the_next_read(steps: list[tuple[str, int]]) -> None:
    """However the steps interleave: widen, then read the store; commit, then send.

    After the last read everything committed that is due within the window has been queued.
    """
    queue = Recorder()
    window = WindowedDispatcher(queue)
    stored: dict[str, int] = {}
    unsent: list[str] = []
    end = -1
    for number, (step, minutes) in enumerate(steps):
        if step == "commit":
            stored[str(number)] = minutes
            unsent.append(str(number))
        elif step == "send" and unsent:
            name = unsent.pop(0)
            window.create(make_message(name, stored[name]))
        elif step == "widen":
            end = minutes
            window.accept_until(NOW + timedelta(minutes=minutes))
        elif step == "read":
            for name, due in stored.items():
                if due <= end:
                    window.create(make_message(name, due))
    for name in unsent:  # the creators that were still on their way
        window.create(make_message(name, stored[name]))
    last_read = max((n for n, (step, _) in enumerate(steps) if step == "read"), default=-1)
    last_widening = max((n for n, (step, _) in enumerate(steps) if step == "widen"), default=-1)
    if last_read > last_widening:
        assert {name for name, due in stored.items() if due <= end} <= queue.names
