"""What every store promises of pages whose documents are large: they are short, and none is left out."""

from __future__ import annotations

from functools import partial

from tests.conftest import NOW, MakeTask
from tests.contract.conftest import OpenStore, iter_pages
from tests.engine.harness import HOUR

from cloudsched.domain.documents.usage import TaskUsage, UsageCounts
from cloudsched.domain.recurrence.allowance import get_bytes_left, limit_search
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.storage.pages import MAX_PAGE_BYTES

LARGE = "a" * 120_000


def test_a_page_of_large_tasks_is_short(open_store: OpenStore, make_task: MakeTask) -> None:
    """Nobody has to ask for that: its token leads to the rest, and who counts tasks counts them all.

    So is one of changed tasks: a sum of usage reads many of them.
    """
    used = (TaskUsage(month="2027-01", handler="h", counts=UsageCounts(queries=1)),)
    with open_store() as store:
        for number in range(12):
            store.commit(Commit(task=make_task(id=f"t{number:02}", created_at=NOW, usage=used, payload={"a": LARGE})))
        query = TaskQuery(owner="ada")
        for read in (partial(store.list_tasks, query), partial(store.search.list_changed, "ada", "")):
            pages = [*iter_pages(lambda token, read=read: read(limit=100, page_token=token))]  # type: ignore[misc]  # bound here
            assert all(page.size < MAX_PAGE_BYTES + 2 * len(LARGE) for page in pages)
            found = [task.id for page in pages for task in page.items]
            assert sorted(found) == [f"t{number:02}" for number in range(12)]
            assert len(pages) == 2
        assert store.search.count_unfinished("ada", 100) == 12
        assert store.search.count_created_since("ada", NOW - HOUR, 11) == 11
        assert len(store.list_tasks(query, limit=100, max_bytes=1).items) == 1


def test_the_lists_of_a_request_read_so_many_bytes_together(open_store: OpenStore, make_task: MakeTask) -> None:
    """Whatever they are of, and whether what they read matches; each page has one at least, so none is left out."""
    with open_store() as store:
        for number in range(24):
            store.commit(Commit(task=make_task(id=f"t{number:02}", created_at=NOW, payload={"a": LARGE})))
        most = 1_500_000
        with limit_search(max_bytes=most):
            for query in (TaskQuery(owner="ada"), TaskQuery(owner="ada", handler="no such", due_from=NOW)):
                pages = [store.list_tasks(query, limit=100)]
                while pages[-1].next_page_token is not None and len(pages) < 4:
                    pages.append(store.list_tasks(query, limit=100, page_token=pages[-1].next_page_token))
                assert get_bytes_left() <= most
            assert get_bytes_left() == 0
            last = store.list_tasks(TaskQuery(owner="ada"), limit=100)
            assert len(last.items) == 1
            assert last.next_page_token is not None
        found, token = list[str](), None
        while not found or token is not None:
            with limit_search(max_bytes=1):
                page = store.list_tasks(TaskQuery(owner="ada"), limit=100, page_token=token)
            found, token = found + [task.id for task in page.items], page.next_page_token
        assert sorted(found) == [f"t{number:02}" for number in range(24)]
