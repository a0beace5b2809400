"""What every store promises about offers: what workers are shown, in which order, and at which version."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloudsched.domain.documents.pull import Offer
from cloudsched.errors import VersionConflict

if TYPE_CHECKING:
    from tests.conftest import MakeTask
    from tests.contract.conftest import OpenStore

    from cloudsched.engine.ports.store import Store, VersionedTask

NOW = datetime(2027, 1, 1, 9, tzinfo=UTC)
_LANES = ("gpu", "gpu/cuda", "press")
_TASKS = st.lists(
    st.tuples(
        st.sampled_from(["ada", "bob"]),
        st.none()
        | st.builds(Offer, queueKey=st.sampled_from(_LANES), order=st.sampled_from(["0 a", "1 a", "1 b", "2 a"])),
    ),
    max_size=12,
)


@settings(max_examples=15, deadline=None)
@given(
    tasks=_TASKS,
    lanes=st.lists(st.sampled_from([*_LANES, "none"]), min_size=1, max_size=3, unique=True),
    owner=st.none() | st.sampled_from(["ada", "eve"]),
    limit=st.integers(1, 4),
)
def test_offers_are_listed_in_order_and_continued_after_a_position(
    open_store: OpenStore,
    make_task: MakeTask,
    tasks: list[tuple[str, Offer | None]],
    lanes: list[str],
    owner: str | None,
    limit: int,
) -> None:
    """Over all pages, each offer of these queue keys and this owner is listed once, by its order, then by its id."""
    with open_store() as store:
        made = [make_task(id=f"t{number:02}", owner=who, offer=offer) for number, (who, offer) in enumerate(tasks)]
        for task in made:
            store.commit(task, None)
        fitting = [one for one in made if one.offer and one.offer.queue_key in lanes and owner in {None, one.owner}]
        expected = sorted(fitting, key=lambda one: (one.offer and one.offer.order, one.id))
        found: list[VersionedTask] = []
        after = None
        while page := store.list_claimable(lanes, owner, limit=limit, after=after):
            assert len(page) <= limit
            found += page
            last = page[-1].task
            assert last.offer
            after = last.offer.order, last.id
        assert [one.task for one in found] == expected


def test_an_offer_includes_the_version_that_a_claim_commits_on(store: Store, make_task: MakeTask) -> None:
    """Two workers that read the same offer cannot both claim it, and the claim needs no further read."""
    store.commit(make_task(id="a", offer=Offer(queue_key="gpu", order="2 a")), None)
    (first,), (second,) = store.list_claimable(["gpu"], limit=1), store.list_claimable(["gpu"], limit=1)
    store.commit(first.task.model_copy(update={"offer": None}), first.version)
    with pytest.raises(VersionConflict):
        store.commit(second.task.model_copy(update={"offer": None}), second.version)
    assert not store.list_claimable(["gpu"], limit=1)


def test_a_task_offered_in_another_queue_is_listed_only_there(store: Store, make_task: MakeTask) -> None:
    """The lists follow the current state of the task."""
    task = make_task(id="a", offer=Offer(queue_key="gpu", order="2 a"))
    version = store.commit(task, None)
    store.commit(task.model_copy(update={"offer": Offer(queue_key="press", order="2 a")}), version)
    assert not store.list_claimable(["gpu"], limit=1)
    assert [one.task.id for one in store.list_claimable(["press"], limit=1)] == ["a"]
