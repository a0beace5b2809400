"""Creating many tasks with one request, each with a result of its own, as if each had been created alone."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from cloudsched.web.api.idempotency import create_or_edit
from cloudsched.web.api.problems import render_problem
from cloudsched.web.api.quotas import remaining
from cloudsched.web.api.responses import task_to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.app import App
    from cloudsched.domain.documents.task import Task
    from cloudsched.web.auth.roles import Caller

MAX_THREADS = 8
"""How many tasks of a batch are created at the same time. Each waits for the store and the queue, not for this CPU."""


def create_batch(app: App, caller: Caller, contents: Sequence[dict[str, Any]], key: str | None) -> list[dict[str, Any]]:
    """Create tasks and return their results in the same order: a ``task``, or the ``problem`` with it.

    With an idempotency key each is safe to repeat: its own key is the batch's with its place behind it.
    """
    allowed, refusal = remaining(app, caller, len(contents))

    def attempt(place: int, content: dict[str, Any]) -> tuple[Task, bool]:
        if place >= allowed and refusal is not None:
            raise refusal
        return create_or_edit(app, caller, content, None if key is None else f"{key}#{place}")

    def one(place: int, content: dict[str, Any]) -> dict[str, Any]:
        try:
            task, is_new = attempt(place, content)
        except Exception as error:  # noqa: BLE001 - each has a result of its own; problem() logs what is ours
            answer = render_problem(error)
            return {"status": answer.status_code, "problem": json.loads(answer.get_data())}
        return {"status": 201 if is_new else 200, "task": task_to_json(task)}

    places = range(len(contents))
    if len(contents) == 1:
        return [one(0, contents[0])]
    with ThreadPoolExecutor(min(MAX_THREADS, len(contents)), thread_name_prefix="batch") as threads:
        context = copy_context()
        return list(threads.map(lambda place: context.copy().run(one, place, contents[place]), places))
