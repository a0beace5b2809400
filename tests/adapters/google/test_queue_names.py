"""Which queue takes which dispatch: spread evenly, repeated in the same place, hops apart from what is due."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from cloudsched.adapters.google.cloud_tasks import choose_queues, list_queue_ids
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.transitions.wakeups import Dispatch
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.engine.signed_dispatches import encode_dispatch

AT = datetime(2027, 1, 1, 9, tzinfo=UTC)
MESSAGES = st.builds(
    QueueMessage,
    st.text(min_size=1),
    st.just(AT),
    st.just(b""),
    st.just("t"),
    st.sampled_from(Priority),
    st.none() | st.sampled_from(["EMAIL", "COMPLETION"]),
    st.booleans(),
)


@given(message=MESSAGES, count=st.integers(1, 200))
def test_the_normal_queue_takes_what_no_other_does(message: QueueMessage, count: int) -> None:
    """No queue is asked twice, a priority's first one stands behind its others, and the same dispatch has the same."""
    names = choose_queues("q", message, count)
    assert names == choose_queues("q", message, count)
    assert names[-1] == "q"
    assert len(names) == len(set(names))
    assert (names[0] == "q-hops") == message.is_hop
    if message.channel is None:
        first = "q" if message.priority is Priority.NORMAL else f"q-{message.priority.lower()}"
        assert first in names
        assert set(names) <= set(list_queue_ids("q", count))


def test_dispatches_are_spread_evenly() -> None:
    """Each of k queues gets about a k-th of the dispatches, also of tasks whose ids follow each other."""
    counts = Counter[str]()
    for number in range(10_000):
        dispatch = Dispatch(f"task-{number:06}", 1, "e", AT, 1, AT + timedelta(seconds=number), AT)
        counts[choose_queues("q", QueueMessage(encode_dispatch(dispatch)[0], AT, b"", "t"), 10)[0]] += 1
    assert len(counts) == 10
    assert max(counts.values()) < 1.2 * 1_000
