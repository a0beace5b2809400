"""Checks of what tasks say of their workers: what may have some, and what users may ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.errors import Forbidden, InvalidInput

if TYPE_CHECKING:
    from cloudsched.domain.documents.children import Child
    from cloudsched.domain.documents.task import TaskSpec
    from cloudsched.domain.transitions.task_draft import TaskDraft
    from cloudsched.engine.handlers.registry import Handler, Registry


def refuse_groups(draft: TaskDraft, _requesters: object) -> TaskDraft:
    """Return the draft, which has a handler of its own: what runs others has no worker.

    Raises InvalidInput.
    """
    for is_one, other, parts in (
        (draft.children, "children", "children"),
        (draft.script, "a script", "tools"),
    ):
        if is_one:
            hint = f"Set it on the {parts} that workers should run."
            raise InvalidInput("pull", f"is given together with {other}", hint)
    return draft


def require_open_queue(handler: Handler, asked: TaskSpec | Child, where: str) -> None:
    """Check that users may ask a handler for a queue.

    `where` is the place of what they ask. Raises InvalidInput.
    """
    own = None if handler.pull is None else handler.pull.queue
    queue = None if asked.pull is None else asked.pull.queue
    if queue == own or queue in handler.user_queues or (queue is None and where):
        return  # a child that names none has the handler's own

    named = "no queue" if queue is None else f"the queue {queue!r}"
    allowed = ", ".join(sorted({*handler.user_queues, *({own} if own else ())}))
    hint = f"Users may ask for {allowed}; leave it out for the handler's own." if allowed else "Leave it out."
    raise InvalidInput(f"{where}pull", f"names {named}, which users may not ask {handler.name!r} for", hint)


def require_user_queue(queue: str, registry: Registry) -> None:
    """Check that something of a user's may wait in a queue. Raises Forbidden."""
    handlers = list(registry.for_users())
    known = {each.pull.queue for each in handlers if each.pull is not None}.union(
        *(each.user_queues for each in handlers)
    )
    if queue not in known:
        hint = f"they may ask for {', '.join(sorted(known))}" if known else "they may ask for none"
        raise Forbidden(f"Users' tasks are in no queue {queue!r}: {hint}.")
