"""A path through a world as a story that a person can read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.model.broken import Broken
from tests.model.explorer import Action, Found, Model, Proc, State
from tests.model.replay import Entry
from tests.model.values import Call, Writes, to_instant

from cloudsched import Task


def tell(model: Model, found: Found) -> str:
    """Return what happened, line by line, and the rule that is broken by it."""
    with model.processes.without_chance():
        lines = list(_iter_lines(model, found.path))
    return "\n".join([*lines, f"so   {found.rule}"])


def _iter_lines(model: Model, path: tuple[Action, ...]) -> Iterator[str]:
    try:
        state: State | None = model.begin()
    except Broken:
        return  # the first request breaks it
    for each in path:
        assert state is not None
        yield f"{to_instant(state.time):%H:%M:%S} {_tell_action(model, state, each)}"
        state = _follow(model, state, each)
    if path and state is not None:
        yield f"{to_instant(state.time):%H:%M:%S} now no process lives, and the queue has lost everything"


def _follow(model: Model, state: State, action: Action) -> State | None:
    try:
        return next((after for each, after in model.actions(state) if each == action), None)
    except Broken:
        return None


def _tell_action(model: Model, state: State, action: Action) -> str:
    match action.kind:
        case "tick":
            return "time passes"
        case "crash":
            return f"{_name(model, _entry(model, state.procs[action.which]))} dies"
        case "start":
            entry = model.entries[action.which]
            node = model.processes.begin(entry)
            proc = next(one.proc for one in model.settle(node, state.time) if one.proc is not None)
            return f"{_name(model, entry)} begins, and {_tell_call(model, state, proc, action)}"
        case _:
            proc = state.procs[action.which]
            return f"{_name(model, _entry(model, proc))} {_tell_call(model, state, proc, action)}"


def _entry(model: Model, proc: Proc) -> Entry:
    return model.processes.nodes[proc[0]].entry


def _name(model: Model, entry: Entry) -> str:
    """Return what a process does. An executor is told by its dispatch."""
    return f"the executor of {model.processes.messages[entry.message].name}" if entry.kind == "deliver" else entry.name


def _tell_call(model: Model, state: State, proc: Proc, action: Action) -> str:
    number = model.processes.next_step(model.processes.nodes[proc[0]], proc[1]).call
    call = model.processes.calls[number]
    if call.kind == "handler":
        return f"runs the handler of {call.key[1]} (attempt {call.key[2]}): {action.answer}"
    if call.kind == "send":
        return f"sends {model.processes.messages[call.key[0]].name}"
    answer, _ = model.effect(state.snapshot, number)
    text = _tell_answer(call, answer, model.values.documents)
    return f"{text}; the call {action.answer}" if action.answer else text


def _tell_answer(call: Call, answer: Any, documents: list[Any]) -> str:  # noqa: ANN401 - any answer
    if call.kind == "load" and call.key[0].startswith("task/"):
        return "finds no task" if answer is None else f"reads {_tell_task(documents[answer])}"
    if call.kind == "commit":
        return f"commits {_tell_writes(call.content, documents)} ({answer})"
    return f"asks for {call.kind} {' '.join(map(str, call.key))}"


def _tell_task(task: Task) -> str:
    runs = [
        f"{run.execution_id} attempt {run.attempt} "
        + (f"leased until {run.lease.until:%H:%M:%S}" if run.lease else f"due {run.due_at:%H:%M:%S}")
        for run in task.runs
    ]
    following = "" if task.next_execution_time is None else f", next {task.next_execution_time:%H:%M}"
    deleted = ", deleted" if task.deleted_at else ""
    return f"{task.id}: {task.status}, revision {task.revision}{', '.join([following + deleted, *runs])}"


def _tell_writes(writes: Writes, documents: list[Any]) -> str:
    said = []
    for key, number in writes.documents:
        written = None if number is None else documents[number]
        said.append(_tell_task(written) if isinstance(written, Task) else f"{key}: {written!r}")
    return "; ".join(said)
