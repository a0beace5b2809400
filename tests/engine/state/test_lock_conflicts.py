"""The number of retries is bounded if a lock keeps changing while a transition of it is committed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast
from unittest.mock import Mock

import pytest

from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.transitions.locks import Holder, Lock
from cloudsched.engine.dispatch import DispatchSender
from cloudsched.engine.ports.store import VersionedLock
from cloudsched.engine.state.commits import MAX_CONFLICTS
from cloudsched.engine.state.locks import Locks
from cloudsched.errors import StoreUnavailable, VersionConflict

NOW = datetime(2027, 1, 1, 9, tzinfo=UTC)


def test_a_lock_that_keeps_changing_is_left_to_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a bounded number of conflicts the operation raises StoreUnavailable, so that the queue delivers again."""
    store = SqliteStore()
    holders = (Holder(task_id="t", execution_id="e", until=NOW),)
    store.commit_lock(VersionedLock(Lock(key="k", holders=holders), None))
    commits = Mock(side_effect=VersionConflict("lock k"))
    monkeypatch.setattr(store, "commit_lock", commits)
    locks = Locks(store, cast("DispatchSender", Mock()))
    with pytest.raises(StoreUnavailable, match=f"^Lock k changed {MAX_CONFLICTS} times"):
        locks.cancel("k", "t", "e", NOW)
    assert commits.call_count == MAX_CONFLICTS
    store.close()
