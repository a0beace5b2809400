"""Creates many tasks with one request. Each has its own result, as if it had been created alone."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from cloudsched.errors import QuotaExceeded
from cloudsched.web.api.idempotency import create_or_edit
from cloudsched.web.api.problems import render_problem
from cloudsched.web.api.responses import task_to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cloudsched.app import App
    from cloudsched.web.auth.roles import Caller

MAX_THREADS = 8
"""How many tasks of a batch are created concurrently. The threads wait for the store and the queue, not for the CPU."""


def create_batch(app: App, caller: Caller, contents: Sequence[dict[str, Any]], key: str | None) -> list[dict[str, Any]]:
    """Create tasks and return a result for each, in the same order: its status with a ``task`` or a ``problem``.

    With an idempotency key, each task is safe to repeat: it is identified by the key and its index in the batch. If the
    caller's quota does not suffice, the first tasks are created. Once one has been refused, none of those after it is
    created: their refusal costs no counting query.
    """
    refusal: QuotaExceeded | None = None

    def create(index: int) -> dict[str, Any]:
        nonlocal refusal
        try:
            task, is_new = create_or_edit(app, caller, contents[index], key, index, refusal)
        except Exception as error:  # noqa: BLE001 - each task has its own result; render_problem() logs server errors
            if isinstance(error, QuotaExceeded):
                refusal = error
            response = render_problem(error)
            return {"status": response.status_code, "problem": json.loads(response.get_data())}
        return {"status": 201 if is_new else 200, "task": task_to_json(task)}

    if len(contents) == 1:
        return [create(0)]
    room = len(contents)
    if caller.visible_owner is not None:
        room = app.container.quotas.count_room(caller.visible_owner, room)
    with ThreadPoolExecutor(min(MAX_THREADS, len(contents)), thread_name_prefix="batch") as threads:
        context = copy_context()

        def create_together(indexes: Iterable[int]) -> list[dict[str, Any]]:
            return list(threads.map(lambda index: context.copy().run(create, index), indexes))

        results = create_together(range(room))
        while len(results) < len(contents) and refusal is None:  # tasks that exist already have taken no room
            results.append(create(len(results)))
        return [*results, *create_together(range(len(results), len(contents)))]
