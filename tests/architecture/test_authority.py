"""Below the doors nothing has authority by default: who may do what is said wherever it is needed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parents[2] / "src/cloudsched"
ROOMS: Final = (
    "adapters",
    "cli",
    "dashboard",
    "domain/transitions",
    "drafts",
    "engine",
    "features",
    "local",
    "outbox",
    "runtime",
    "worker",
)
NAMES: Final = frozenset(
    {"authority", "author", "by", "caller", "claimed_by", "defined_by", "is_user", "owner", "paused_by", "requester"}
    | {"requesters", "role", "subject"}
)
"""What says on whose authority something is done, or whose it is."""
TYPES: Final = frozenset({"Access", "Authority", "Caller", "ClaimCaller", "EventSender", "Requesters"})
QUERIES: Final = frozenset({"TaskQuery", "ExecutionQuery"})
WITH_DEFAULT: Final = {
    "drafts/request.py:DraftRequest.owner": "what a request says, which the door resolves",
    "engine/handlers/async_context.py:wait_for.by": "whose events a handler takes: admins' and its own code's",
    "engine/handlers/context.py:wait_for.by": "the same",
    "engine/handlers/registry.py:Handler.access": "the default is that users may not name it",
    "engine/handlers/typed_calls.py:__call__.owner": "called by the app's own code, which is trusted",
    "engine/ports/search.py:ExecutionQuery.owner": "part of the public interface; the package always names it (below)",
    "engine/ports/search.py:TaskQuery.owner": "the same",
    "engine/queries/audit_trail.py:AuditQuery.owner": "the same",
    "engine/queries/audit_trail.py:AuditQuery.by": "a text to search for",
    "domain/transitions/lifecycle.py:cancel_for_caller.by": "for the message alone: the app's code if nobody is named",
    "domain/transitions/lifecycle.py:restore.by": "the same",
    "domain/transitions/lifecycle.py:resume.by": "the same",
    "features/calendars/operations.py:PutCalendar.owner": "what a request says, which the door resolves",
    "features/pull/operations.py:ClaimRequest.owner": "what a request says, which the door resolves",
    "features/pull/work_queue.py:WorkerFilter.owner": "what a worker wants; what it may claim is said beside it",
    "domain/transitions/finish.py:AttemptReport.defined_by": "it takes authority away from its task's, and gives none",
    "domain/transitions/task_draft.py:TaskDraft.owner": "what is wanted; who creates it is said beside it",
}
"""What may have a default, and why that trusts nobody."""


def test_authority_has_no_default() -> None:
    """Neither a parameter nor a field says by default who acts, whose something is, or that a caller is trusted."""
    found = {each for room in ROOMS for path in (PACKAGE / room).rglob("*.py") for each in _list_defaults(path)}
    assert found == WITH_DEFAULT.keys()


def test_every_list_says_whose_tasks_it_has() -> None:
    """The package never leaves out the owner of a list, which would mean everybody's: it says None for that."""
    silent = [
        f"{path.relative_to(PACKAGE)}:{call.lineno}"
        for path in PACKAGE.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in QUERIES
        if not call.args and not {None, "owner", "parent"} & {each.arg for each in call.keywords}
    ]
    assert not silent


def _list_defaults(path: Path) -> Iterator[str]:
    where = path.relative_to(PACKAGE)
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                positional = [*node.args.posonlyargs, *node.args.args]
                defaults = [None] * (len(positional) - len(node.args.defaults)) + list(node.args.defaults)
                pairs = [
                    *zip(positional, defaults, strict=True),
                    *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
                ]
                for argument, default in pairs:
                    if default is not None and _is_authority(argument):
                        yield f"{where}:{node.name}.{argument.arg}"
            case ast.ClassDef(bases=bases) if "Record" not in {ast.unparse(each) for each in bases}:  # what is stored
                for field in node.body:
                    if isinstance(field, ast.AnnAssign) and _is_authority(field) and _has_default(field):
                        yield f"{where}:{node.name}.{ast.unparse(field.target)}"


def _has_default(field: ast.AnnAssign) -> bool:
    """Whether a field has a value that a caller can leave out; one that is computed is no parameter."""
    return field.value is not None and "init=False" not in ast.unparse(field.value)


def _is_authority(declared: ast.arg | ast.AnnAssign) -> bool:
    name = declared.arg if isinstance(declared, ast.arg) else ast.unparse(declared.target)
    union = [] if declared.annotation is None else ast.unparse(declared.annotation).split(" | ")
    return name in NAMES or not TYPES.isdisjoint(union)
