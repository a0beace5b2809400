"""What surrounds every view: the views in the top bar, the clock, what was said, and who is signed in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from cloudsched.dashboard.routes import TABS, UNDONE_BY
from cloudsched.dashboard.times import Moment, find_zone, make_moment, write_duration

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.dashboard.task_view import TaskPage
    from cloudsched.dashboard.visit import Visit

LOCAL_INTERVAL, CLOUD_INTERVAL = 2, 10
"""How often a page asks for news, in seconds."""
MOST_OFF: Final = timedelta(seconds=5)
"""How far this machine's clock may be off before that is said."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where pages are served."""

    name: str
    """What the foot says about it."""
    clock_mode: str | None = None
    """Whether the local stack's clock runs, in a word; None beside a deployment, where no clock can be moved."""
    has_sign_in: bool = False
    """Whether people sign in here, and so can sign out."""
    now: datetime | None = None
    """What the clock of this machine says."""


@dataclass(frozen=True, slots=True)
class Undo:
    """What takes back what was just done, unless somebody has changed the task since."""

    path: str
    etag: str


@dataclass(frozen=True, slots=True)
class Shell:
    """The view model of what surrounds a view."""

    views: list[dict[str, Any]]
    now: Moment
    clock: str
    mode: str
    has_time: bool
    every: int
    live: str
    zone: str
    place: str
    said: str
    said_tone: str
    skew: str
    """That the clock of this machine is off, if it is: times are those of the API's clock."""
    undo: Undo | None
    signed_in: str
    """As whom, in words; empty where nobody signs in."""


def make_shell(
    visit: Visit, place: Place, *, tab: str, zone: str, said: str = "", tone: str = "", is_live: bool = True
) -> Shell:
    """Return what surrounds a view.

    Args:
        visit: Who looks, and when.
        place: Where.
        tab: The view in the top bar that it belongs to; empty for none.
        zone: In which the view's times are.
        said: What a verb has to say.
        tone: The colour of it.
        is_live: Whether the view changes by itself.
    """
    interval = LOCAL_INTERVAL if visit.is_local else CLOUD_INTERVAL
    every = interval if is_live else 0
    mode = place.clock_mode
    tabs = TABS if mode is None else {**TABS, "Time": ("time", "i")}
    return Shell(
        views=[
            {"name": name, "path": path, "key": key, "is_current": name == tab} for name, (path, key) in tabs.items()
        ],
        now=make_moment(visit.now, visit.now, find_zone(zone) or visit.zone),
        clock="" if mode is None else f"local clock {mode}",
        mode=mode or "",
        has_time=mode is not None,
        every=every,
        live=f"Live, every {every} s",
        zone=zone,
        place=place.name,
        said=said,
        said_tone=tone,
        skew="" if visit.is_local else _write_skew(place.now, visit.now),
        undo=None,
        signed_in=f"Signed in{f' with the role {visit.role}' if visit.role else ''}" if place.has_sign_in else "",
    )


def _write_skew(here: datetime | None, there: datetime) -> str:
    """Return how far this machine's clock is off that of a deployment; nothing if that is little."""
    if here is None or abs(here - there) <= MOST_OFF:
        return ""
    return f"This machine's clock is {write_duration(abs(here - there))} {'ahead' if here > there else 'behind'}"


def offer_undo(shell: Shell, page: TaskPage, done: str) -> Shell:
    """Return the same with what takes back a verb that was done with the task, if the caller may."""
    verb = UNDONE_BY.get(done)
    if verb is None or verb not in page.verbs:
        return shell
    return replace(shell, undo=Undo(f"tasks/{page.id}/verbs/{verb}", page.etag))
