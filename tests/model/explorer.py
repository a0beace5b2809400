"""The code that runs, explored: every order, every crash, every lost answer of a small world.

TLA+ and its like check a model beside the code. Our decisions are pure functions and our engine calls its ports one
after the other, so there is no need for a second description: the code itself is the model, and a fault in it cannot
hide in the translation. (Tables for TLC, generated from the functions, would have to enumerate the same documents, and
FizzBee and Stateright want the system written again, in their language.)

**A state** is the time (one of a few instants), the store, the messages that were ever created, the requests that were
made, and where each process stands. A store is a set of numbered values (`values`). A process stands at a call of a
port: a read, a commit, a message, its handler. `replay` finds its next call by running the engine's own code, from the
entry (`Executor.deliver`, `Sweeper.sweep`, `App.pause` …) with the answers that it has got.

**An action** is one of these, at any moment:

* A process gets the answer to its call, and goes on to its next one. A commit takes effect or conflicts, as the store
  then is. Where the world has faults, the store does not answer, before or after the commit took effect, or the
  adapter repeats a commit that took effect, and that conflicts with itself; and the queue does not take a message.
* A handler ends in one of the ways of its world, or renews its lease.
* A process dies where it stands.
* A message that was ever created and is due is delivered; also late, also again, also after its process answered 2xx.
  So the queue delays, reorders, repeats and (as a message need never be delivered) loses.
* A sweep begins, a request is made, a worker asks for work.
* Time passes to the next instant, whoever stands where. A process that has looked at the clock since its last answer
  keeps what it saw, or has stood still before it looked: both are tried.

**Rules** (`rules`) look at each commit, at the handlers that run at one moment, and (`quiet`) at how everything ends
if from this state on nothing fails: all processes are dead, the queue has lost everything, and the names of messages
stay taken. The sweep alone has to end every occurrence that came due, and no order of events may go on for ever.

**What is not tried apart**, as it leads to nothing else (the reductions):

* A message is created with the answer before it, not in a step of its own: one that is not created yet and one that
  is not delivered yet are the same to everybody but the name's next creator, and `quiet` takes the worse for that one.
* A process begins with its first read: nobody sees it before.
* A version is the content, and for the same content written again one of three numbers. If a document becomes again
  what it was, a commit that was decided on it succeeds where a store would have refused it; the process would then have
  read the same and decided the same.
* A lease token is the smallest number that nobody uses: tokens are only compared for equality.
* Processes that stand at the same place are the same, whoever came first.
* A commit that is too late meets its conflict as soon as it is: nothing else can become of it. A delivery that has
  done nothing before that reads its task again, as a new delivery of the same message would; that one is tried instead.
  (Not in worlds where calls fail.)

The search is breadth-first, so what breaks a rule is met first in a shortest story, which `stories` tells.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.model import replay, rules
from tests.model.broken import Broken
from tests.model.effects import Effects
from tests.model.quiet import Quiet
from tests.model.replay import CONFLICT, MOST_TOKENS, NO_CLOCK, SECRET, UNAVAILABLE, Entry, Node, Processes, Step
from tests.model.rules import Committing, Handling
from tests.model.values import Call, Values, to_instant, to_seconds
from tests.model.worlds import World

from cloudsched.domain.documents.execution import lease_fingerprint
from cloudsched.engine.sweep.sweeper import Sweeper

Proc = tuple[int, int]
"""Where a process stands: the number of its node, and the time that it has seen since its last answer."""

READS = frozenset({"load", "load_lock", "load_many", "list_waiters", "list"})
"""The calls that change nothing."""


class State(NamedTuple):
    time: int
    snapshot: int
    created: int
    """The messages that were ever created, one bit each."""
    used: int
    """The requests that were made, one bit each."""
    procs: tuple[Proc, ...]


class Settled(NamedTuple):
    """Where a process may stand after an answer, with what it has sent on the way."""

    labels: tuple[str, ...]
    created: int
    proc: Proc | None
    result: Any


class Action(NamedTuple):
    kind: str
    """``tick``, ``start``, ``step`` or ``crash``."""
    which: int
    """The process by its place, the entry by its number, or the processes that stood still, one bit each."""
    answer: str = ""
    """How a call is answered."""
    branch: int = 0
    """Which of the places after it, by what the queue answers."""


@dataclass
class Found:
    states: int
    transitions: int
    depth: int
    rule: str | None = None
    path: tuple[Action, ...] = ()
    is_whole: bool = True


class Model:
    """A world, and everything that was found out about it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.values = Values()
        self.processes = Processes(self.values)
        self.effects = Effects(self.values)
        self._effects: dict[tuple[int, int], tuple[Any, int]] = {}
        self._verdicts: dict[tuple[int, int, str, int | None, int, int], str | None] = {}
        self._settled: dict[tuple[int, int], tuple[Settled, ...]] = {}
        self._deliveries: dict[tuple[int, int, bool], Entry] = {}
        self._due_times: list[int] = []
        self._anew: dict[int, bool] = {}
        self._steps: dict[int, Step] = {}
        self.entries: list[Entry] = []
        self._entry_numbers: dict[Entry, int] = {}
        world.register(self.processes)
        self._sweep = self._number(Entry("the sweep", "sweep", self._run_sweep))
        self.requests = [
            self._number(Entry(name, "client", lambda work=work: work(self.processes.app)))  # type: ignore[misc]
            for name, work in world.requests.items()
        ]
        self._visits: dict[tuple[str, int], int] = {}
        self.quiet = Quiet(self)

    def visit(self, name: str, token: int) -> int:
        """Return the number of the entry by which a worker asks for work."""
        known = self._visits.get((name, token))
        if known is None:
            work = self.world.workers[name]
            entry = Entry(name, "worker", lambda: work(self.processes), token=token)
            known = self._visits[name, token] = self._number(entry)
        return known

    def _number(self, entry: Entry) -> int:
        known = self._entry_numbers.get(entry)
        if known is None:
            known = self._entry_numbers[entry] = len(self.entries)
            self.entries.append(entry)
        return known

    def _run_sweep(self) -> object:
        container = self.processes.app.container
        return Sweeper(container.engine, container.child_tasks).sweep()  # with a new process's memory

    def effect(self, snapshot: int, number: int) -> tuple[Any, int]:
        """Return the answer to a call, and the store after it."""
        known = self._effects.get((snapshot, number))
        if known is None:
            known = self._effects[snapshot, number] = self.effects.take(snapshot, self.processes.calls[number])
        return known

    # ── What processes do ────────────────────────────────────────────────────────────────────────────────────────

    def settle(self, node: Node, time: int) -> tuple[Settled, ...]:
        """Return where a process may stand that has got its answer at that time, by what the queue answers."""
        key = node.number, time
        known = self._settled.get(key)
        if known is None:
            known = self._settled[key] = tuple(self._settle(node, time, (), 0))
        return known

    def _settle(self, node: Node, time: int, labels: tuple[str, ...], created: int) -> Iterator[Settled]:
        step = self.processes.next_step(node, time)
        if step.call < 0:
            yield Settled(labels, created, None, step.result)
            return
        call = self.processes.calls[step.call]
        seen = time if step.reads_clock else NO_CLOCK
        if call.kind != "send" or self.world.sends_apart:
            yield Settled(labels, created, (node.number, seen), None)
            return
        number = call.key[0]
        self.check_message(number, time)
        sent = self.processes.answer(node, seen, "sent")
        yield from self._settle(sent, time, (*labels, f"send {number}"), created | 1 << number)
        if self.world.queue_fails:
            refused = self.processes.answer(node, seen, UNAVAILABLE)
            yield from self._settle(refused, time, (*labels, f"refuse {number}"), created)

    def check_message(self, number: int, time: int) -> None:
        """Check a message that is sent. Raises Broken."""
        message = self.processes.messages[number]
        if message.at > to_instant(time) + rules.HORIZON:
            raise Broken(f"6: a dispatch lies {message.at - to_instant(time)} ahead")
        if SECRET.encode() in message.body:
            raise Broken("7: the secret is in the queue")

    def _check_sent(self, number: int, snapshot: int) -> None:
        """Check that what a message is for is stored. Raises Broken."""
        task_id = json.loads(self.processes.messages[number].body)["taskId"]
        if self.values.find(snapshot, f"task/{task_id}") is None:
            raise Broken(f"8: a dispatch is sent for {task_id}, which is not committed")

    def due_at(self, number: int) -> int:
        while len(self._due_times) <= number:
            self._due_times.append(to_seconds(self.processes.messages[len(self._due_times)].at))
        return self._due_times[number]

    def delivery(self, number: int, token: int, *, is_other: bool = False) -> int:
        """Return the number of the entry that delivers a message, perhaps to another version of the code."""
        known = self._deliveries.get((number, token, is_other))
        if known is None:
            message = self.processes.messages[number]
            app = self.processes.other_app if is_other else self.processes.app
            known = Entry(
                f"delivery of {number}{' to other code' if is_other else ''}",
                "deliver",
                lambda: app.deliver(message.body, message.token),
                message=number,
                token=token,
                revision=_revision_of(message.body),
            )
            self._deliveries[number, token, is_other] = known
        return self._number(known)

    def draw_token(self, state: State) -> int:
        """Return the smallest number of a lease token that nobody uses."""
        nodes = self.processes.nodes
        used = {nodes[node].entry.token for node, _ in state.procs}
        return self._draw(used | self.tokens_in(state.snapshot))

    def tokens_in(self, snapshot: int) -> set[int]:
        """Return the processes whose lease tokens are in a store, by their tokens' numbers."""
        return {(n - 1) % MOST_TOKENS + 1 for n in self.values.tokens_in(snapshot)}

    @staticmethod
    def _draw(used: set[int]) -> int:
        token = next(n for n in range(1, len(used) + 2) if n not in used)
        assert token <= MOST_TOKENS
        return token

    def draw_free_token(self, snapshot: int) -> int:
        """Return the smallest number of a lease token that is not in a store."""
        return self._draw(self.tokens_in(snapshot))

    def call_of(self, proc: Proc) -> Call:
        node, seen = proc
        return self.processes.calls[self.processes.next_step(self.processes.nodes[node], seen).call]

    # ── States ──────────────────────────────────────────────────────────────────────────────────────────────────

    def begin(self) -> State:
        """Return the first state: its requests have been made, one after the other, without a fault."""
        begins_at = self.world.instants[0] if self.world.begins_at is None else 0
        state = State(begins_at, self.values.keep_snapshot({}), 0, 0, ())
        self.values.token(replay.MOST_DRAWS * MOST_TOKENS)
        for name, work in self.world.setup.items():
            entry = Entry(name, "client", lambda work=work: work(self.processes.app))  # type: ignore[misc]
            snapshot, created = self.quiet.run_entry(entry, state.time, state.snapshot)
            state = state._replace(snapshot=snapshot, created=state.created | created)
        if self.world.begins_at is None:
            return state
        return self.quiet.live_until(state, self.world.begins_at)._replace(time=self.world.instants[0])

    def actions(self, state: State) -> Iterator[tuple[Action, State]]:
        """Yield every action of a state, and the state after it.

        Raises:
            Broken: An action breaks a rule; the last one that was tried is `self.tried`.
        """
        yield from self._ticks(state)
        if len(state.procs) < self.world.processes:
            yield from self._starts(state)
        for place in range(len(state.procs)):
            yield from self._steps_of(state, place)
            self.tried = Action("crash", place)
            rest = (*state.procs[:place], *state.procs[place + 1 :])
            yield self.tried, state._replace(procs=rest)

    def _ticks(self, state: State) -> Iterator[tuple[Action, State]]:
        later = next((at for at in self.world.instants if at > state.time), None)
        if later is None:
            return
        looked = [place for place, (_, seen) in enumerate(state.procs) if seen not in {NO_CLOCK, later}]
        for still in range(1 << len(looked)):
            slow = [place for bit, place in enumerate(looked) if still >> bit & 1]
            self.tried = Action("tick", sum(1 << place for place in slow))
            moved = [(state.created, tuple(proc for n, proc in enumerate(state.procs) if n not in slow))]
            for place in slow:
                node = self.processes.nodes[state.procs[place][0]]
                moved = [
                    (created | settled.created, procs if settled.proc is None else (*procs, settled.proc))
                    for created, procs in moved
                    for settled in self.settle(node, later)
                ]
            for branch, (created, procs) in enumerate(moved):
                after = state._replace(time=later, created=created, procs=tuple(sorted(procs)))
                for place in slow:
                    self._check_slow(after, state.procs[place])
                yield self.tried._replace(branch=branch), after

    def _starts(self, state: State) -> Iterator[tuple[Action, State]]:
        entries = self.processes.nodes
        kinds = [entries[node].entry.kind for node, _ in state.procs]
        if self.world.sweeps and "sweep" not in kinds:
            yield from self._start(state, self._sweep, state.used)
        for bit, number in enumerate(self.requests):
            if not state.used >> bit & 1 and state.used.bit_count() < self.world.most_requests:
                yield from self._start(state, number, state.used | 1 << bit)
        token = self.draw_token(state)
        for name in self.world.workers:
            yield from self._start(state, self.visit(name, token), state.used)
        rest, number = state.created, 0
        if not self.world.delivers_again:
            held = {entries[node].entry.message for node, _ in state.procs}
            rest = sum(1 << bit for bit in range(rest.bit_length()) if rest >> bit & 1 and bit not in held)
        while rest:
            if rest & 1 and self.due_at(number) <= state.time:
                yield from self._start(state, self.delivery(number, token), state.used)
                if self.world.has_other_code:
                    yield from self._start(state, self.delivery(number, token, is_other=True), state.used)
            rest, number = rest >> 1, number + 1

    def _start(self, state: State, number: int, used: int) -> Iterator[tuple[Action, State]]:
        self.tried = Action("start", number)
        node = self.processes.begin(self.entries[number])
        for settled in self.settle(node, state.time):
            if settled.proc is None:
                continue
            began = state._replace(used=used, created=state.created | settled.created)
            yield from self._answer(began, settled.proc, state.procs, "start", number)

    def _steps_of(self, state: State, place: int) -> Iterator[tuple[Action, State]]:
        rest = (*state.procs[:place], *state.procs[place + 1 :])
        yield from self._answer(state, state.procs[place], rest, "step", place)

    def _answer(
        self, state: State, proc: Proc, rest: tuple[Proc, ...], kind: str, which: int
    ) -> Iterator[tuple[Action, State]]:
        """Yield what follows from each answer to the call at which a process stands."""
        node = self.processes.nodes[proc[0]]
        step = self.processes.next_step(node, proc[1])
        call = self.processes.calls[step.call]
        if call.kind == "handler":
            if kind == "start":  # a handler's process never begins with it
                raise AssertionError
            for choice in self.world.handler_endings:
                yield from self._go_on(state, proc, rest, Action(kind, which, choice), choice, state.snapshot)
            return
        self.tried = Action(kind, which)
        if call.kind == "send":
            self.check_message(call.key[0], state.time)
            self._check_sent(call.key[0], state.snapshot)
            sent = state._replace(created=state.created | 1 << call.key[0])
            yield from self._go_on(sent, proc, rest, self.tried, "sent", state.snapshot)
            return
        answer, snapshot = self.effect(state.snapshot, step.call)
        if snapshot != state.snapshot and call.kind == "commit":
            decided_at = state.time if proc[1] == NO_CLOCK else proc[1]
            self.check_commit(state.snapshot, snapshot, step.call, node.entry, decided_at)
        yield from self._go_on(state, proc, rest, Action(kind, which), answer, snapshot)
        if not self.world.store_fails:
            return
        if kind == "step":
            failed = Action(kind, which, "does not reach the store")
            yield from self._go_on(state, proc, rest, failed, UNAVAILABLE, state.snapshot)
        if call.kind == "commit" and snapshot != state.snapshot:
            lost = Action(kind, which, "takes effect, and its answer is lost")
            yield from self._go_on(state, proc, rest, lost, UNAVAILABLE, snapshot)
            repeated = Action(kind, which, "takes effect, is repeated, and conflicts with itself")
            yield from self._go_on(state, proc, rest, repeated, CONFLICT, snapshot)

    def _go_on(
        self, state: State, proc: Proc, rest: tuple[Proc, ...], action: Action, answer: object, snapshot: int
    ) -> Iterator[tuple[Action, State]]:
        self.tried = action
        node = self.processes.answer(self.processes.nodes[proc[0]], proc[1], answer)
        for branch, settled in enumerate(self.settle(node, state.time)):
            self.tried = action if branch == 0 else action._replace(branch=branch)
            procs, created = rest, state.created | settled.created
            if snapshot != state.snapshot and rest and not self.world.store_fails:
                created, procs = self._meet_conflicts(snapshot, state.time, created, rest)
            stands_at = settled.proc
            if stands_at is not None and not self.world.store_fails:
                sent, stands_at = self._meet_conflict(snapshot, state.time, stands_at)
                created |= sent
            procs = procs if stands_at is None else tuple(sorted((*procs, stands_at)))
            after = State(state.time, snapshot, created, state.used, procs)
            if stands_at is not None:
                self._check_handlers(after, stands_at)
            elif settled.proc is None:
                self._check_result(after, node.entry, settled.result)
            yield self.tried, after

    def _meet_conflicts(
        self, snapshot: int, time: int, created: int, procs: tuple[Proc, ...]
    ) -> tuple[int, tuple[Proc, ...]]:
        """Let each process whose commit is too late since the store has changed meet its conflict now."""
        found = list[Proc]()
        for each in procs:
            sent, proc = self._meet_conflict(snapshot, time, each)
            created |= sent
            if proc is not None:
                found.append(proc)
        return created, tuple(sorted(found))

    def _meet_conflict(self, snapshot: int, time: int, began_at: Proc) -> tuple[int, Proc | None]:
        """Return where a process stands whose commit, if it stands at one, is not too late; None if it begins anew."""
        sent, proc = 0, began_at
        while True:
            node = self.processes.nodes[proc[0]]
            number = self.processes.next_step(node, proc[1]).call
            if self.processes.calls[number].kind != "commit" or self.effect(snapshot, number)[0] != CONFLICT:
                return sent, proc
            node = self.processes.answer(node, proc[1], CONFLICT)
            if self._begins_anew(node):
                return sent, None
            (after,) = self.settle(node, time)
            sent |= after.created
            if after.proc is None:
                return sent, None
            proc = after.proc

    def _begins_anew(self, node: Node) -> bool:
        """Return whether a delivery has met a conflict and done nothing yet: it stands where it began."""
        known = self._anew.get(node.number)
        if known is None:
            known, each = node.entry.kind == "deliver", node.parent
            while known and each is not None and each.parent is not None:
                step = self.processes.next_step(each.parent, each.time)
                known, each = self.processes.calls[step.call].kind in READS, each.parent
            self._anew[node.number] = known
        return known

    # ── Rules ────────────────────────────────────────────────────────────────────────────────────────────────────

    def check_commit(self, before: int, after: int, call: int, entry: Entry, decided_at: int) -> None:
        """Check a commit that took effect. Raises Broken."""
        key = before, call, entry.kind, entry.revision, entry.token, decided_at
        if key not in self._verdicts:
            writes = self.processes.calls[call].content
            commit = Committing(self.values, before, after, writes, entry, decided_at)
            self._verdicts[key] = rules.check_commit(commit)
        verdict = self._verdicts[key]
        if verdict is not None:
            raise Broken(verdict)

    def _check_handlers(self, state: State, proc: Proc) -> None:
        call = self.call_of(proc)
        if call.kind != "handler":
            return
        mine = Handling(*call.key)
        begun = rules.check_begin(self.values, state.snapshot, mine, state.time)
        if begun is not None:
            raise Broken(begun)
        if len(state.procs) > 1:
            calls = [self.call_of(each) for each in state.procs]
            running = [Handling(*each.key) for each in calls if each.kind == "handler"]
            broken = rules.check_handlers(running, state.time)
            if broken is not None:
                raise Broken(broken)

    def _check_slow(self, after: State, before: Proc) -> None:
        """Check the handlers that a process begins that stood still until now."""
        for proc in after.procs:
            if proc[1] == after.time and self.processes.nodes[proc[0]].entry is self.processes.nodes[before[0]].entry:
                self._check_handlers(after, proc)

    def _check_result(self, state: State, entry: Entry, result: object) -> None:
        """Check what a process says that has ended."""
        if entry.kind == "client":
            broken = rules.check_told(self.values, state.snapshot, result)
        elif entry.kind == "deliver" and entry.token in self.tokens_in(state.snapshot):
            fingerprint = lease_fingerprint(self.values.token(entry.token))
            broken = rules.check_done(self.values, state.snapshot, fingerprint, result, state.time)
        else:
            broken = None
        if broken is not None:
            raise Broken(broken)

    # ── The search ───────────────────────────────────────────────────────────────────────────────────────────────

    def explore(self, most: int | None = None) -> Found:
        """Visit every state, the nearest first, until a rule is broken or `most` states were met."""
        with self.processes.without_chance():
            return self._explore(most)

    def _explore(self, most: int | None) -> Found:
        try:
            first = self.begin()
        except Broken as broken:
            return Found(0, 0, 0, f"{broken} (at the first request)")
        self.seen = seen = {first: 0}
        states, parents, by = [first], [-1], list[Action | None]([None])
        depths, transitions, at = [0], 0, 0

        def end(rule: str | None, number: int, last: Action | None, *, is_whole: bool = True) -> Found:
            path = [] if last is None else [last]
            while (action := by[number]) is not None:
                path.append(action)
                number = parents[number]
            return Found(len(states), transitions, depths[-1], rule, tuple(path[::-1]), is_whole)

        while at < len(states):
            try:
                for action, after in self.actions(states[at]):
                    transitions += 1
                    if after in seen:
                        continue
                    seen[after] = len(states)
                    states.append(after)
                    parents.append(at)
                    by.append(action)
                    depths.append(depths[at] + 1)
            except Broken as broken:
                return end(str(broken), at, self.tried)
            stuck = self._follow(states[at])
            if stuck is not None:
                return end(stuck, at, None)
            if most is not None and len(states) >= most:
                return end(None, 0, None, is_whole=False)
            at += 1
        return end(None, 0, None)

    def _follow(self, state: State) -> str | None:
        """Return the rule that is broken if nothing fails from a state on, or None."""
        try:
            stuck = self.quiet.check(state)
        except Broken as broken:
            stuck = str(broken)
        return None if stuck is None else f"{stuck} (if nothing fails from here on)"


def _revision_of(body: bytes) -> int:
    return int(json.loads(body)["revision"])
