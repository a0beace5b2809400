"""An agent that does whatever comes to its mind, on days on which much goes wrong.

Beside it, a list of each task's times is kept by plain arithmetic: what the agent's person would expect.
"""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from random import Random
from typing import TYPE_CHECKING, Final

from tests.agents.complaints.world import DAY, MINUTE, SECOND, World

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_TASKS: Final = 3
HORIZON: Final = 60
"""The days for which times are worked out."""
FOR_GOOD: Final = datetime.max.replace(tzinfo=UTC)


class Walk:
    """A random walk through the tools, with sleeps, restarts, lost dispatches and a mail server that is down."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.random = Random(seed)  # noqa: S311 - must be repeatable
        self.times: dict[str, list[datetime]] = {}
        """When each task runs, if it is not paused."""
        self.pauses: dict[str, datetime] = {}
        """Until when each task is paused."""
        self.is_late = False
        """Whether something may be due that has not begun, because the machine has slept."""
        self.count = 0

    def go(self, steps: int) -> None:
        """Take so many steps, and let all come to an end."""
        anywhere = [self.create, self.pass_time, self.pass_time, self.sleep, self.restart, self.lose, self.repeat]
        on_a_task = [self.pause, self.pause_until, self.resume, self.change, self.rename, self.read]
        in_time = [self.skip, self.move, self.run, self.cancel]
        for self.count in range(steps):
            ways = [*anywhere, self.break_mail, *(on_a_task if self.times else ())]
            self.random.choice([*ways, *(in_time if self.times and not self.is_late else ())])()

        self.world.mail.is_down = False
        self.world.advance(2 * MINUTE)
        for task in self.times:
            self._resume(task)
        self.world.advance(2 * DAY)

    # ------------------------------------------------------------------ what happens

    def pass_time(self) -> None:
        self.is_late = False
        self.world.advance(self._choose_length())

    def sleep(self) -> None:
        self.is_late = True
        self.world.sleep(self._choose_length())

    def restart(self) -> None:
        self.is_late = True
        self.world.restart(after=self._choose_length())

    def lose(self) -> None:
        self.world.sim.queue.purge()

    def repeat(self) -> None:
        for message in self.world.sim.pending():
            self.world.sim.redeliver(message)

    def break_mail(self) -> None:
        self.world.mail.is_down = not self.world.mail.is_down

    # ------------------------------------------------------------------ what the agent does

    def create(self) -> None:
        if len(self.times) < MOST_TASKS:
            clock = self._choose_time()
            title = f"Task {self.count}"
            task = self.world.new(f"every day at {clock:%H:%M}", title=title, channels=["WEB", "EMAIL"], key=title)
            self._plan(task, self._list_daily(clock))

    def read(self) -> None:
        self.world.ask("read_task", id=self._choose())
        self.world.ask("find_tasks")

    def rename(self) -> None:
        self.world.ask("change_task", id=self._choose(), title=f"Renamed {self.count}")

    def pause(self) -> None:
        self._pause(task := self._choose(), self.world.ask("pause_task", id=task), FOR_GOOD)

    def pause_until(self) -> None:
        task = self._choose()
        day = (self.world.now + self.random.randrange(1, 4) * DAY).astimezone(self.world.zone)
        answer = self.world.ask("pause_task", id=task, until=f"{day.day} {day:%B}")
        self._pause(task, answer, datetime.combine(day.date(), time(0), self.world.zone).astimezone(UTC))

    def _pause(self, task: str, answer: object, until: datetime) -> None:
        if isinstance(answer, dict):
            self.pauses[task] = until
            self._plan(task, self.times[task])

    def resume(self) -> None:
        self._resume(self._choose())

    def _resume(self, task: str) -> None:
        was_paused = self._is_paused(task)
        answer = self.world.ask("resume_task", id=task)
        if was_paused:
            assert isinstance(answer, dict), answer
            del self.pauses[task]
            self._plan(task, self.times[task])

    def change(self) -> None:
        if not self._is_paused(task := self._choose()):
            clock = self._choose_time()
            assert isinstance(self.world.ask("change_task", id=task, when=f"every day at {clock:%H:%M}"), dict)
            self._plan(task, self._list_daily(clock))

    def skip(self) -> None:
        task = self._choose()
        if isinstance(self.world.ask("skip_next", id=task), dict):
            self._plan(task, self._list_coming(task)[1:])

    def move(self) -> None:
        task, clock = self._choose(), self._choose_time()
        first, *others = self._list_coming(task)
        moved = datetime.combine(first.astimezone(self.world.zone), clock, self.world.zone).astimezone(UTC)
        if isinstance(self.world.ask("move_next", id=task, to=f"{clock:%H:%M}"), dict):
            assert moved > self.world.now, "a run was moved into the past, where nobody misses it"
            self._plan(task, sorted([moved, *others]))

    def run(self) -> None:
        task, asked_at = self._choose(), self.world.now
        if isinstance(self.world.ask("run_task", id=task), dict):
            self.world.expect(task, [asked_at - SECOND, *self._list_coming(task)])
            self.world.advance(MINUTE)

    def cancel(self) -> None:
        if not self.random.randrange(4):
            task = self._choose()
            assert isinstance(self.world.ask("cancel_task", id=task), dict)
            self.world.expect(task, [])
            del self.times[task]

    # ------------------------------------------------------------------ what is expected

    def _plan(self, task: str, times: Sequence[datetime]) -> None:
        """Expect a task at these times, but for those in its pause."""
        self.times[task] = list(times)
        ends = self.pauses.get(task, self.world.now)
        self.world.expect(task, [each for each in times if each > self.world.now and each >= ends])

    def _list_coming(self, task: str) -> list[datetime]:
        return [each for each in self.times[task] if each > self.world.now]

    def _list_daily(self, clock: time) -> list[datetime]:
        today = self.world.now.astimezone(self.world.zone).date()
        times = self.world.daily(f"{today}T{clock}", HORIZON)
        return [each for each in times if each > self.world.now]

    def _is_paused(self, task: str) -> bool:
        return self.pauses.get(task, self.world.now) > self.world.now

    def _choose(self) -> str:
        return self.random.choice(list(self.times))

    def _choose_time(self) -> time:
        return time(self.random.randrange(8, 24), self.random.randrange(60))

    def _choose_length(self) -> timedelta:
        return self.random.choice([3, 50, 400, 1000, 3000]) * MINUTE
