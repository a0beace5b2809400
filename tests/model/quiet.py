"""How everything ends if from some state on nothing fails any more.

The worst that faults may have left: no process lives, the queue has lost every message, and the names of all that were
ever created stay taken. From then on messages are delivered when they are due, sweeps come at each full minute at which
something is overdue, workers ask for work, and time passes only when nothing is left to do at an instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.model import rules
from tests.model.broken import Broken
from tests.model.replay import CONFLICT, NO_CLOCK, Entry
from tests.model.values import to_seconds

from cloudsched.engine.sweep.sweeper import GRACE

if TYPE_CHECKING:
    from tests.model.explorer import Model, State

_MOST_STEPS = 300
"""Many times what any world needs to come to its end."""
_MINUTE = 60


class _Rest(NamedTuple):
    """A state without processes."""

    time: int
    snapshot: int
    pending: int
    """The messages that will be delivered, one bit each."""
    names: int
    """The messages whose names are taken."""
    swept_at: int


class Quiet:
    """Follows a state to its end, without faults."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._ends: dict[_Rest, tuple[str | None, int]] = {}
        self._verdicts: dict[tuple[int, int], list[tuple[int, int, str | None]]] = {}

    def check(self, state: State) -> str | None:
        """Return the rule that is broken if nothing fails from this state on, or None."""
        known = self._verdicts.setdefault((state.time, state.snapshot), [])
        for tried, taken, verdict in known:
            if state.created & tried == taken:
                return verdict
        verdict, tried = self._follow(_Rest(state.time, state.snapshot, 0, state.created, -1))
        if verdict is None and self._model.world.is_queue_enough:
            kept = _Rest(state.time, state.snapshot, state.created, state.created, self._model.world.end)
            verdict, _ = self._follow(kept)
            tried = -1
        known.append((tried, state.created & tried, verdict))
        return verdict

    def live_until(self, state: State, time: int) -> State:
        """Return the state after everything that happens until then, without a fault."""
        rest = _Rest(state.time, state.snapshot, state.created, state.created, -1)
        while (after := self._next(rest)) is not None and after[0].time < time:
            rest = after[0]
        return state._replace(time=time, snapshot=rest.snapshot, created=rest.names)

    def _follow(self, rest: _Rest) -> tuple[str | None, int]:
        """Return what is broken at the end, and the messages that were sent on the way."""
        path, tried_here = list[_Rest](), list[int]()
        while True:
            if (known := self._ends.get(rest)) is not None:
                verdict, tried = known
                break
            if len(path) > _MOST_STEPS or (rest in path):
                verdict, tried = "4: it goes on for ever, and nothing ends", 0
                break
            after = self._next(rest)
            if after is None:
                verdict, tried = rules.check_end(self._model.values, rest.snapshot, rest.time), 0
                path.append(rest)
                tried_here.append(0)
                break
            path.append(rest)
            tried_here.append(after[1])
            rest = after[0]
        for each, sent in zip(reversed(path), reversed(tried_here), strict=True):
            tried |= sent
            self._ends[each] = verdict, tried
        return verdict, tried

    def _next(self, rest: _Rest) -> tuple[_Rest, int] | None:
        """Return what comes next, and what that has sent; None if nothing does."""
        model = self._model
        pending = [n for n in range(rest.pending.bit_length()) if rest.pending >> n & 1]
        due = [n for n in pending if model.due_at(n) <= rest.time]
        if due:
            number = min(due, key=lambda n: (model.due_at(n), n))
            entry = model.entries[model.delivery(number, model.draw_free_token(rest.snapshot))]
            return self._run(rest._replace(pending=rest.pending & ~(1 << number)), entry)
        for name in model.world.workers:
            after = self._run(rest, model.entries[model.visit(name, model.draw_free_token(rest.snapshot))])
            if after[0] != rest:
                return after
        sweep_at = self._next_sweep(rest)
        if sweep_at is not None and sweep_at <= rest.time:
            return self._run(rest._replace(swept_at=rest.time), model.entries[0])
        moments = [model.due_at(n) for n in pending] + ([] if sweep_at is None else [sweep_at])
        if not moments or min(moments) > model.world.end:
            if rest.time < model.world.end:
                return rest._replace(time=model.world.end), 0
            return None
        return rest._replace(time=min(moments)), 0

    def _next_sweep(self, rest: _Rest) -> int | None:
        if rest.swept_at >= self._model.world.end:
            return None
        due = [task.wake_at for task in self._model.values.tasks(rest.snapshot) if task.wake_at is not None]
        if not due:
            return None
        earliest = max(to_seconds(min(due) + GRACE), rest.time, rest.swept_at + 1)
        return -(-earliest // _MINUTE) * _MINUTE

    def _run(self, rest: _Rest, entry: Entry) -> tuple[_Rest, int]:
        snapshot, sent = self.run_entry(entry, rest.time, rest.snapshot)
        new = sent & ~rest.names
        return rest._replace(snapshot=snapshot, pending=rest.pending | new, names=rest.names | new), sent

    def run_entry(self, entry: Entry, time: int, snapshot: int) -> tuple[int, int]:
        """Run an entry to its end, alone and without a fault; return the store after it and what it sent."""
        model = self._model
        node, sent, answers = model.processes.begin(entry), 0, 0
        while True:
            settled = model.settle(node, time)[0]
            sent |= settled.created
            if settled.proc is None:
                if isinstance(settled.result, Exception) and entry.kind == "client":
                    raise settled.result
                return snapshot, sent
            number, seen = settled.proc
            node = model.processes.nodes[number]
            step = model.processes.next_step(node, seen)
            call = model.processes.calls[step.call]
            if call.kind == "send":
                model.check_message(call.key[0], time)
                sent |= 1 << call.key[0]
                answer: object = "sent"
            elif call.kind == "handler":
                answer = model.world.handler_endings[0]
            else:
                before = snapshot
                answer, snapshot = model.effect(snapshot, step.call)
                if snapshot != before and call.kind == "commit":
                    model.check_commit(before, snapshot, step.call, node.entry, time if seen == NO_CLOCK else seen)
            answers += 1
            if answer == CONFLICT and answers > _MOST_STEPS:
                raise Broken("4: a process meets its own conflict for ever")
            node = model.processes.answer(node, seen, answer)
