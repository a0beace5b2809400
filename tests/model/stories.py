"""A path through a world as a story that a person can read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tests.model.broken import Broken
from tests.model.explorer import Action, Found, Model, Proc, State
from tests.model.replay import CONFLICT, Entry
from tests.model.values import Call, Writes, to_instant

from cloudsched import Task


def tell(model: Model, found: Found) -> str:
    """Return what happened, line by line, and the rule that is broken by it."""
    with model.processes.without_chance():
        lines = list(_Teller(model).tell(found.path))
    return "\n".join([*lines, f"so   {found.rule}"])


class _Teller:
    def __init__(self, model: Model) -> None:
        self._model = model
        self._names: dict[Entry, str] = {}
        self._count = 0

    def tell(self, path: Sequence[Action]) -> Iterator[str]:
        if not path:
            return
        state = self._model.begin()
        for each in path:
            at = f"{to_instant(state.time):%H:%M:%S}"
            yield f"{at} {self._tell_action(state, each)}"
            after = self._follow(state, each)
            if after is None:
                return
            yield from (f"{at} {text}" for text in self._tell_conflicts(state, after, each))
            state = after
        yield f"{to_instant(state.time):%H:%M:%S} now no process lives, and the queue has lost everything"

    def _follow(self, state: State, action: Action) -> State | None:
        try:
            for each, after in self._model.actions(state):
                if each == action:
                    return after
        except Broken:
            return None
        return None

    def _tell_conflicts(self, before: State, after: State, action: Action) -> Iterator[str]:
        """Yield what has become of the processes whose commits this action has made too late."""
        if action.kind == "tick":
            return
        acting = before.procs[action.which] if action.kind in {"step", "crash"} else None
        moved = {self._entry(proc) for proc in after.procs}
        for proc in before.procs:
            if proc == acting or proc in after.procs:
                continue
            then = "goes on from there" if self._entry(proc) in moved else "begins anew"
            yield f"{self._names[self._entry(proc)]} comes too late with its commit, and {then}"

    def _entry(self, proc: Proc) -> Entry:
        return self._model.processes.nodes[proc[0]].entry

    def _name(self, entry: Entry) -> str:
        if entry.kind == "deliver":
            self._count += 1
        self._names[entry] = f"executor {self._count}" if entry.kind == "deliver" else entry.name
        return self._names[entry]

    def _tell_action(self, state: State, action: Action) -> str:
        names = [self._names[self._entry(proc)] for proc in state.procs]
        match action.kind:
            case "tick":
                still = [name for place, name in enumerate(names) if action.which >> place & 1]
                return f"time passes{''.join(f'; {each} stands still meanwhile' for each in still)}"
            case "crash":
                return f"{names[action.which]} dies"
            case "start":
                entry = self._model.entries[action.which]
                node = self._model.processes.begin(entry)
                proc = next(one.proc for one in self._model.settle(node, state.time) if one.proc is not None)
                given = f"gets {self.describe_message(entry.message)}" if entry.kind == "deliver" else "begins"
                return f"{self._name(entry)} {given}, and {self._describe_call(state, proc, action)}"
            case _:
                return f"{names[action.which]} {self._describe_call(state, state.procs[action.which], action)}"

    def _describe_call(self, state: State, proc: Proc, action: Action) -> str:
        model = self._model
        node, seen = model.processes.nodes[proc[0]], proc[1]
        number = model.processes.next_step(node, seen).call
        call = model.processes.calls[number]
        if call.kind == "handler":
            said = "renews its lease" if action.answer == "heartbeat" else f"ends: {action.answer}"
            answer: Any = action.answer
            text = f"runs the handler of {_short(call.key[1])} (attempt {call.key[2]}), which {said}"
        else:
            answer, _ = model.effect(state.snapshot, number)
            text = self._describe_answer(call, answer)
            if action.answer:
                text += f"; the call {action.answer}"
                answer = CONFLICT if "conflicts" in action.answer else "unavailable"
        after = model.processes.answer(node, seen, answer)
        try:
            settled = model.settle(after, state.time)[action.branch]
        except Broken:
            return text
        for label in settled.labels:
            verb, _, message = label.partition(" ")
            text += (
                f"; it sends {self.describe_message(int(message))}"
                if verb == "send"
                else "; the queue refuses its dispatch"
            )
        if settled.proc is None:
            result = settled.result
            text += f"; it is done ({getattr(result, 'action', None) or type(result).__name__}" + (
                f": {result.reason})" if hasattr(result, "reason") else ")"
            )
        return text

    def _describe_answer(self, call: Call, answer: Any) -> str:  # noqa: ANN401 - any answer
        documents = self._model.values.documents
        match call.kind:
            case "load" if call.key[0].startswith("task/"):
                return f"reads {_describe_task(documents[answer])}" if answer is not None else "finds no task"
            case "commit" if answer == CONFLICT:
                return f"meets a conflict with its commit of {_describe_writes(call.content, documents)}"
            case "commit":
                return f"commits {_describe_writes(call.content, documents)}"
            case "list_due":
                return f"finds overdue: {', '.join(documents[n].id for n in answer) or 'nothing'}"
            case kind:
                return f"asks for {kind} {' '.join(map(str, call.key))}"

    def describe_message(self, number: int) -> str:
        """Return what a dispatch is for."""
        content = json.loads(self._model.processes.messages[number].body)
        more = "".join(
            f", {name} {content[name]}"
            for name in ("hop", "repair", "suspensionCount", "lockTurn")
            if content.get(name)
        )
        at = self._model.processes.messages[number].at
        return (
            f"the dispatch of {content['taskId']} {_short(content['executionId'])}, revision {content['revision']}, "
            f"attempt {content['attempt']}{more}, for {at:%H:%M:%S}"
        )


def _short(execution_id: str) -> str:
    return f"{execution_id[9:11]}:{execution_id[11:13]}" + execution_id[16:]


def _describe_task(task: Task) -> str:
    runs = [
        f"{_short(run.execution_id)} attempt {run.attempt} "
        + (f"leased until {run.lease.until:%H:%M:%S}" if run.lease else f"due {run.due_at:%H:%M:%S}")
        for run in task.runs
    ]
    following = "" if task.next_execution_time is None else f", next {task.next_execution_time:%H:%M}"
    deleted = ", deleted" if task.deleted_at else ""
    return (
        f"{task.id}: {task.status}, revision {task.revision}{following}{deleted}{''.join(f', {each}' for each in runs)}"
    )


def _describe_writes(writes: Writes, documents: list[Any]) -> str:
    said = [
        _describe_task(documents[number])
        for key, number in writes.documents
        if key.startswith("task/") and number is not None
    ]
    for key, number in writes.documents:
        kind, _, name = key.partition("/")
        if kind == "record" and number is not None:
            said.append(f"{_short(name.partition('/')[2])} is {documents[number].status}")
        elif kind not in {"task", "record"}:
            said.append(f"{key} {'deleted' if number is None else ''}".strip())
    return "; ".join(said)
