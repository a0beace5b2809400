"""What every store promises about offers: what workers are shown, in which order, and at which version."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import NOW, MakeTask
from tests.contract.conftest import OpenStore, load

from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.store import Store
from cloudsched.errors import VersionConflict
from cloudsched.features.pull.fields import Offer, OfferEntry
from cloudsched.features.pull.offers import build_offer_entry

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
            store.commit(Commit(task))
        fitting = [one for one in made if one.offer and one.offer.queue_key in lanes and owner in {None, one.owner}]
        expected = sorted(fitting, key=lambda one: (one.offer and one.offer.order, one.id))
        found: list[OfferEntry] = []
        after = None
        while page := store.list_offers(lanes, owner, limit=limit, after=after):
            assert len(page) <= limit
            found += page
            after = page[-1].order, page[-1].task_id
        assert found == [build_offer_entry(one) for one in expected]
        loaded = {one.task.id: one.task for one in store.load_many([one.task_id for one in found])}
        assert [loaded[one.task_id] for one in found] == expected


def find(store: Store, queue_key: str) -> Sequence[str]:
    return [each.task_id for each in store.list_offers([queue_key], None, limit=10)]


def test_a_commit_that_fails_changes_no_offer(store: Store, make_task: MakeTask) -> None:
    """The offer is part of the task's commit: it neither appears nor goes if the task is not written."""
    task = make_task(id="a", offer=Offer(queue_key="gpu", order="2 a"))
    written = store.commit(Commit(task))
    newer = store.commit(Commit(task.model_copy(update={"title": "newer"}), written))
    for changed in (None, Offer(queue_key="press", order="2 a")):
        with pytest.raises(VersionConflict):
            store.commit(Commit(task.model_copy(update={"offer": changed}), written))
        assert (find(store, "gpu"), find(store, "press")) == (["a"], [])
    store.commit(Commit(task.model_copy(update={"offer": None}), newer))
    with pytest.raises(VersionConflict):
        store.commit(Commit(task))
    assert not find(store, "gpu")


_STATES = st.none() | st.tuples(
    st.builds(Offer, queueKey=st.sampled_from(_LANES), order=st.sampled_from(["1 a", "2 a"])),
    st.sampled_from(["work", "chore"]),
)


@settings(max_examples=20, deadline=None)
@given(states=st.lists(_STATES, min_size=1, max_size=5), reads=st.lists(st.booleans(), min_size=5, max_size=5))
def test_an_offer_is_stored_exactly_as_long_as_its_task_has_it(
    open_store: OpenStore, make_task: MakeTask, states: list[tuple[Offer, str] | None], reads: list[bool]
) -> None:
    """Through any changes, on versions that were read and those that commits returned; also after a purge."""
    with open_store() as store:
        task, written = make_task(id="a"), None
        for state, is_read in zip(states, reads, strict=False):
            offer, handler = state or (None, "work")
            task = task.model_copy(update={"offer": offer, "handler": handler})
            written = store.commit(Commit(task, written))
            if is_read:
                written = load(store, "a")
            expected = [] if offer is None else [build_offer_entry(task)]
            assert store.list_offers(_LANES, None, limit=5) == expected
        store.commit(Commit(task.model_copy(update={"deleted_at": NOW}), written))
        store.sweep.purge("a")
        assert not store.list_offers(_LANES, None, limit=5)


def test_many_tasks_are_loaded_in_one_call(store: Store, make_task: MakeTask) -> None:
    """Those that do not exist are left out, and so are ids that no task can have."""
    made = {key: store.commit(Commit(make_task(id=key))) for key in ("a", "b")}
    found = store.load_many(["b", "missing", "a", "no/id", ""])
    assert {one.task.id: one for one in found} == made
    assert not store.load_many([])
