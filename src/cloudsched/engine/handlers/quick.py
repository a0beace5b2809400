"""Quick handlers: idempotent handlers of seconds, whose claim is committed together with their result.

What would need a claim of its own is refused: a lock, workers, a journal, and an overlap policy that asks whether a run
is open. It is refused as early as it is known: when the handler is registered, when its task is created or edited, or
when the handler asks for it.
"""

from __future__ import annotations

import inspect
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.policy import Overlap
from cloudsched.domain.transitions.claim import MAX_QUICK_DURATION
from cloudsched.domain.transitions.invalid_input import Faults
from cloudsched.engine.durable.no_journal import NoJournal
from cloudsched.errors import InvalidInput, Misconfigured

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from types import CodeType

    from cloudsched.domain.documents.children import Child
    from cloudsched.domain.documents.pull import Pull
    from cloudsched.domain.transitions.drafts import TaskDraft
    from cloudsched.engine.handlers.handler import Handler
    from cloudsched.engine.handlers.signature import Signature


DEFAULT_QUICK_DURATION = timedelta(seconds=10)
"""How long an attempt may take, unless the handler or its task says it."""
_DURABLE = frozenset({"step", "call", "gather", "race", "sleep", "wait_for", "version"})
"""The operations of a context that are recorded in a journal."""


def validate_quick(
    name: str, *, quick: object, pull: Pull | None, expected_duration: timedelta | None, queues: Collection[str]
) -> bool:
    """Return whether a handler is quick.

    Raises:
        Misconfigured: It is, and has an option that a quick handler cannot have.
    """
    if not isinstance(quick, bool):
        raise Misconfigured(f"Handler {name!r}: quick is {quick!r}; give True or False.")
    if not quick:
        return False
    if pull is not None or queues:
        option = "pull" if pull is not None else "user_queues"
        raise Misconfigured(
            f"Handler {name!r}: quick=True and {option} exclude each other, since workers claim what they run. "
            "Leave out one of them."
        )
    if expected_duration is not None and expected_duration > MAX_QUICK_DURATION:
        raise Misconfigured(
            f"Handler {name!r}: expected_duration is {expected_duration}, and a quick handler takes at most "
            f"{MAX_QUICK_DURATION}. Leave out quick=True, or say a shorter duration."
        )
    return True


def refuse_durable_use(name: str, function: Callable[..., Any], signature: Signature) -> None:
    """Refuse a quick handler whose code asks its context for something durable, as far as the code shows it.

    Raises:
        Misconfigured: It does, and where.
    """
    if not signature.takes_context:
        return
    target = inspect.unwrap(function)
    code = getattr(target, "__code__", None) or getattr(getattr(target, "__func__", None), "__code__", None)
    if code is None:
        return
    context = next(iter(inspect.signature(function).parameters))
    found = next(_find_durable_use(code, context), None)
    if found is not None:
        operation, line = found
        raise Misconfigured(
            f"Handler {name!r} is quick, and uses {context}.{operation} in line {line} of {code.co_filename}: a quick "
            "handler has no journal. Leave out quick=True, or the durable operation."
        )


def _find_durable_use(code: CodeType, context: str) -> Iterator[tuple[str, int]]:
    """Yield the durable operations that code asks a variable for, with their lines."""
    import dis  # noqa: PLC0415 - for quick handlers only

    line, previous = code.co_firstlineno, None
    for instruction in dis.get_instructions(code):
        line = (instruction.positions.lineno if instruction.positions else None) or line
        is_attribute = instruction.opname in {"LOAD_ATTR", "LOAD_METHOD"} and instruction.argval in _DURABLE
        if is_attribute and previous is not None and previous.argval == context:
            yield str(instruction.argval), line
        if instruction.opname not in {"CACHE", "EXTENDED_ARG", "NOP"}:
            previous = instruction
    for constant in code.co_consts:
        if inspect.iscode(constant) and context not in constant.co_varnames[: constant.co_argcount]:
            yield from _find_durable_use(constant, context)


def require_quick_task(handler: Handler, spec: TaskDraft | Child, changed: Collection[str] | None = None) -> None:
    """Refuse a task, or a child, that its quick handler cannot run with one commit.

    Args:
        handler: The quick handler.
        spec: The draft, with the handler's defaults; or the child.
        changed: The fields that an edit concerns; None for all. Others stay as they were: such a task runs as if its
            handler were not quick.

    Raises:
        InvalidInput: A field does not fit; its hint says what to do.
    """
    overlap, duration = getattr(spec, "overlap", Overlap.ALLOW), spec.expected_duration
    is_long = duration is not None and duration > MAX_QUICK_DURATION
    whose = f", and its handler {handler.name!r} is quick"
    leave_out = "Leave it out, or name a handler that is not quick."
    problems = {
        "lockKey": (spec.lock_key is not None, f"is given{whose}: it takes no lock", leave_out),
        "pull": (spec.pull is not None, f"is given{whose}: workers claim what they run", leave_out),
        "overlap": (
            overlap is not Overlap.ALLOW,
            f"is {overlap.value!r}{whose}: nobody can tell whether a run of it is open",
            f"Give {Overlap.ALLOW.value!r}, or name a handler that is not quick.",
        ),
        "expectedDuration": (
            is_long,
            f"is {duration}{whose}: it takes at most {MAX_QUICK_DURATION}",
            "Give a shorter one, or name a handler that is not quick.",
        ),
    }
    is_whole = changed is None or "handler" in changed
    faults = Faults()
    for field, (is_wrong, problem, hint) in problems.items():
        if is_wrong and (is_whole or field in (changed or ())):
            faults.add(InvalidInput(field, problem, hint))
    faults.tell()


class QuickJournal(NoJournal):
    """The `DurableRun` of a quick handler: it refuses whatever would have to be recorded."""

    why_not = (
        ", and a quick handler has no journal: its claim and its result are one commit. Leave out quick=True where the "
        "handler is registered."
    )
