"""The limits of what users may request and start: a handler's priorities and queues, as tools and children too.

`Registry.for_users` decides which handlers a user may name at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.documents.delivery_channels import USERS_CHANNELS
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.transitions.lifecycle import require_not_held
from cloudsched.domain.transitions.validation_errors import Faults
from cloudsched.errors import Forbidden, InvalidInput
from cloudsched.features.table import FEATURES, find_place

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task, TaskSpec
    from cloudsched.engine.handlers.registry import Handler, Registry

_USER_CHECKS: Final = [place for feature in FEATURES for place in feature.user_checks]


def require_user_access(draft: TaskSpec, registry: Registry) -> None:
    """Check the priorities and queues that a user's draft requests from its handlers. Raises InvalidInput."""
    faults = Faults()
    with faults:
        _require_channels(draft)
    with faults:
        handler = registry.get(draft.handler)
        with faults:
            _require_priority(handler, draft.priority, "priority")
        for place in _USER_CHECKS:
            find_place(place)(handler, draft, "")
    for number, child in enumerate(draft.children):
        where = f"children.{number}"
        child_handler = registry.find(child.handler)
        if child_handler is None:
            continue  # which each caller refuses, at its place
        with faults:
            with faults:
                _require_priority(child_handler, child.priority or draft.priority, f"{where}.priority")
            for place in _USER_CHECKS:
                find_place(place)(child_handler, child, f"{where}.")
    faults.tell()


def _require_channels(draft: TaskSpec) -> None:
    for channel in draft.delivery_channels:
        if not channel.traits.may_users_name:
            *first, last = USERS_CHANNELS
            hint = f"It is the operator's own. Name {', '.join(first)} or {last}."
            raise InvalidInput("deliveryChannels", f"has {channel}, which users may not ask for", hint)


def require_user_edit(task: Task, registry: Registry) -> None:
    """Check that a user may edit a task whose handler and payload stay as they are. Raises InvalidInput."""
    users = registry.for_users()
    require_user_access(task, users)
    for each in task.children:
        users.get(each.handler)
    for name in (task.script.tools or ()) if task.script is not None else ():
        if not users.get(name).is_tool:
            raise InvalidInput("tools", f"no tool is named {name!r}")
    for place in (place for feature in FEATURES for place in feature.edit_checks):
        find_place(place)(task)


def require_user_start(task: Task, registry: Registry) -> None:
    """Check that a user may start a task: one that a user could create as it is, or has paused.

    Raises Forbidden, or NotAllowed if its owner may use no more for now.
    """
    require_not_held(task)
    if task.status is not TaskStatus.PAUSED or task.paused_by is not Requesters.USERS:
        _require_user_could_create(task, registry)


def may_user_claim(task: Task, registry: Registry) -> bool:
    """Return whether its owner may claim a task's runs as a worker: a user requested and could start them.

    Nothing that servers or code asked for, as they rely on its results, its failure hook and its lock.
    """
    if not may_user_report(task, registry):
        return False
    try:
        _require_user_could_create(task, registry)
    except Forbidden:
        return False
    return True


def may_user_report(task: Task, registry: Registry) -> bool:
    """Return whether its owner may renew and end a claim that they hold, even if the task was moved since."""
    return task.is_for_user and not task.is_made_by_code and task.handler in registry.for_users()


def _require_user_could_create(task: Task, registry: Registry) -> None:
    users = registry.for_users()
    try:
        require_user_access(task, users)
        for child in task.children:
            users.get(child.handler)
        if task.script is not None and task.defined_by is not Requesters.USERS:
            for tool in registry:
                if tool.is_tool and (task.script.tools is None or tool.name in task.script.tools):
                    users.get(tool.name)
    except InvalidInput as error:
        raise _refuse_start("runs what only servers may ask for") from error
    for place in (place for feature in FEATURES for place in feature.start_checks):
        if why := find_place(place)(task):
            raise _refuse_start(why)


def _refuse_start(why: str) -> Forbidden:
    return Forbidden(f"This task {why}. Its owner may read, pause, cancel and delete it, but not start it.")


def limit_priority(handler: Handler, priority: Priority) -> Priority:
    """Return the priority, lowered to the most urgent one that users may request from the handler."""
    return max(priority, handler.user_max_priority, key=lambda each: each.rank)


def _require_priority(handler: Handler, priority: Priority, field: str) -> None:
    if priority.rank < handler.user_max_priority.rank:
        allowed = ", ".join(each for each in Priority if each.rank >= handler.user_max_priority.rank)
        problem = f"is {priority}, which users may not ask {handler.name!r} for"
        raise InvalidInput(field, problem, f"Users may ask for {allowed}.")
