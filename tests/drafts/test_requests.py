"""What people ask of a stored task is no new task: a change, a skip or a move of one of its runs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from tests.cases import try_each
from tests.drafts_app import make_app

from cloudsched.domain.responses.api_responses import DraftResult
from cloudsched.testing import Simulation

ZONE = ZoneInfo("Europe/Berlin")
NOW = datetime(2027, 6, 10, 8, 15, tzinfo=ZONE)
"""A Thursday."""
YOGA = ("Yoga", "every Monday and Wednesday at 18:00")
REPORT = ("Weekly report", "every Friday at 16:00")
DRINKS = ("Friday drinks", "every Friday at 17:30")
PILLS = ("Tabletten", "every day at 8:30")
STANDUP = ("Standup", "every weekday at 9:15")
BINS = ("Müll rausbringen", "every Thursday at 19:00")


def open_sim() -> Simulation:
    return Simulation(make_app(), start=NOW, each_look=timedelta(0))


@pytest.fixture
def sim() -> Iterator[Simulation]:
    with open_sim() as opened:
        yield opened


def store(sim: Simulation, title: str, schedule: str = "every Monday at 18:00") -> str:
    payload = {"text": "x"}
    made = sim.app.create(
        owner="ada", handler="remind", title=title, payload=payload, schedule=schedule, timezone="Europe/Berlin"
    )
    return made.id


def draft(sim: Simulation, text: str, task: tuple[str, str] | None) -> tuple[DraftResult, str | None]:
    """Return a draft, and the id of the only task that there is."""
    stored = None
    if task is not None:
        stored = store(sim, *task)
    context = {"handler": "remind"}
    return sim.app.draft(text, timezone="Europe/Berlin", owner="ada", context=context), stored


CHANGES = [
    (YOGA, "move yoga to 7pm", "06-14 19:00, 06-16 19:00"),
    (YOGA, "can you change yoga to tuesdays please", "06-15 18:00, 06-22 18:00"),
    (YOGA, "yoga at 19:00 instead of 18:00", "06-14 19:00, 06-16 19:00"),
    (YOGA, "make yoga half an hour earlier from now on", "06-14 17:30, 06-16 17:30"),
    (YOGA, "postpone yoga by an hour", "06-14 19:00, 06-16 19:00"),
    (YOGA, "push yoga back 30 minutes", "06-14 18:30, 06-16 18:30"),
    (YOGA, "add friday to yoga", "06-11 18:00, 06-14 18:00, 06-16 18:00"),
    (YOGA, "yoga on fridays too", "06-11 18:00, 06-14 18:00, 06-16 18:00"),
    (YOGA, "yoga only on mondays", "06-14 18:00, 06-21 18:00"),
    (YOGA, "remove wednesday from yoga", "06-14 18:00, 06-21 18:00"),
    (YOGA, "no more yoga on mondays", "06-16 18:00, 06-23 18:00"),
    (YOGA, "Yoga ab jetzt um 19 statt 18 Uhr", "06-14 19:00, 06-16 19:00"),
    (YOGA, "verschiebe Yoga bitte um eine Stunde nach hinten", "06-14 19:00, 06-16 19:00"),
    (YOGA, "Yoga eine halbe Stunde vorziehen", "06-14 17:30, 06-16 17:30"),
    (YOGA, "Yoga nur noch montags", "06-14 18:00, 06-21 18:00"),
    (YOGA, "Yoga montags nicht mehr", "06-16 18:00, 06-23 18:00"),
    (YOGA, "Yoga auch freitags", "06-11 18:00, 06-14 18:00, 06-16 18:00"),
    (YOGA, "verschiebe Yoga auf abends um 20 Uhr", "06-14 20:00, 06-16 20:00"),
    (BINS, "leg Müll rausbringen dauerhaft von donnerstags auf freitags", "06-11 19:00, 06-18 19:00"),
    (BINS, "Müll rausbringen künftig um 20 Uhr", "06-10 20:00, 06-17 20:00"),
    (PILLS, "Tabletten zusätzlich um 20 Uhr", "06-10 08:30, 06-10 20:00, 06-11 08:30"),
    (PILLS, "Tabletten ab sofort morgens um 7", "06-11 07:00, 06-12 07:00"),
    (PILLS, "die Tabletten bitte erst um 9 Uhr", "06-10 09:00, 06-11 09:00"),
    (PILLS, "verschiebe die Tabletten von heute auf 12 Uhr", "06-10 12:00, 06-11 08:30"),
    (REPORT, "set the time of my weekly report to 15:00", "06-11 15:00, 06-18 15:00"),
    (("Write the report", REPORT[1]), "set the time of my weekly report to 15:00", "06-11 15:00, 06-18 15:00"),
    (YOGA, "delete yoga just this once", "06-16 18:00, 06-21 18:00"),
    (REPORT, "move my report to Monday", "06-14 16:00, 06-21 16:00"),
    (DRINKS, "friday drinks half an hour later", "06-11 18:00, 06-18 18:00"),
    (YOGA, "verzet yoga naar 19 uur", "06-14 19:00, 06-16 19:00"),
    (YOGA, "yoga voortaan om 19 uur in plaats van 18 uur", "06-14 19:00, 06-16 19:00"),
    (YOGA, "stel yoga een half uur uit", "06-14 18:30, 06-16 18:30"),
    (YOGA, "haal yoga een half uur naar voren", "06-14 17:30, 06-16 17:30"),
    (YOGA, "yoga ook op vrijdag", "06-11 18:00, 06-14 18:00, 06-16 18:00"),
    (YOGA, "yoga alleen nog op maandag", "06-14 18:00, 06-21 18:00"),
    (YOGA, "yoga niet meer op maandag", "06-16 18:00, 06-23 18:00"),
    # One of them is left out.
    (YOGA, "skip yoga next week", "06-21 18:00, 06-23 18:00"),
    (YOGA, "skip yoga on wednesday", "06-14 18:00, 06-21 18:00"),
    (YOGA, "skip my next yoga", "06-16 18:00, 06-21 18:00"),
    (YOGA, "no yoga on monday", "06-16 18:00, 06-21 18:00"),
    (YOGA, "yoga is cancelled on wednesday", "06-14 18:00, 06-21 18:00"),
    (DRINKS, "skip friday drinks on the 18th", "06-11 17:30, 06-25 17:30"),
    (STANDUP, "no standup from 14 to 16 june", "06-10 09:15, 06-11 09:15, 06-17 09:15"),
    (YOGA, "Yoga fällt nächste Woche aus", "06-21 18:00, 06-23 18:00"),
    (YOGA, "überspringe Yoga am Mittwoch", "06-14 18:00, 06-21 18:00"),
    (STANDUP, "Standup morgen ausfallen lassen", "06-10 09:15, 06-14 09:15"),
    (STANDUP, "kein Standup am Montag", "06-10 09:15, 06-11 09:15, 06-15 09:15"),
    (STANDUP, "lass Standup morgen aus", "06-10 09:15, 06-14 09:15"),
    (YOGA, "sla yoga woensdag over", "06-14 18:00, 06-21 18:00"),
    (YOGA, "yoga gaat volgende week niet door", "06-21 18:00, 06-23 18:00"),
    (YOGA, "geen yoga op maandag", "06-16 18:00, 06-21 18:00"),
    (STANDUP, "laat standup morgen vervallen", "06-10 09:15, 06-14 09:15"),
    # One of them moves, and the rest stays.
    (STANDUP, "move tomorrow's standup to 11am", "06-10 09:15, 06-11 11:00, 06-14 09:15"),
    (YOGA, "move monday's yoga to tuesday", "06-15 18:00, 06-16 18:00, 06-21 18:00"),
    (YOGA, "move next monday's yoga to thursday at 17:00", "06-16 18:00, 06-17 17:00, 06-21 18:00"),
    (STANDUP, "tomorrow's standup is at 10 just this once", "06-10 09:15, 06-11 10:00, 06-14 09:15"),
    (STANDUP, "verschieb Standup von morgen auf Samstag um 10 Uhr", "06-10 09:15, 06-12 10:00, 06-14 09:15"),
    (STANDUP, "Standup morgen ausnahmsweise um 11 Uhr", "06-10 09:15, 06-11 11:00, 06-14 09:15"),
    (STANDUP, "verzet de standup van morgen naar zaterdag om 10 uur", "06-10 09:15, 06-12 10:00, 06-14 09:15"),
    (STANDUP, "standup morgen eenmalig om 11 uur", "06-10 09:15, 06-11 11:00, 06-14 09:15"),
    (DRINKS, "verschiebe Friday drinks auf morgen um 19 Uhr", "06-11 19:00, 06-18 17:30"),
    # Its title and words of time say how it is from now on.
    (YOGA, "yoga should be every two weeks", "06-14 18:00, 06-16 18:00, 06-28 18:00"),
    (YOGA, "yoga is on Tuesdays now", "06-15 18:00, 06-22 18:00"),
    (YOGA, "yoga every Tuesday at 19:00", "06-15 19:00, 06-22 19:00"),
    (YOGA, "every Tuesday yoga at 19:00", "06-15 19:00, 06-22 19:00"),
    (YOGA, "the yoga takes place on Tuesdays", "06-15 18:00, 06-22 18:00"),
    (YOGA, "yoga starts at 19:00", "06-14 19:00, 06-16 19:00"),
    (("Morning run", "every Sunday at 7:00"), "morning run every Saturday", "06-12 07:00, 06-19 07:00"),
    (YOGA, "yoga until July", "06-14 18:00, 06-16 18:00"),
    (YOGA, "Yoga soll alle zwei Wochen sein", "06-14 18:00, 06-16 18:00, 06-28 18:00"),
    (YOGA, "Yoga ist jetzt dienstags", "06-15 18:00, 06-22 18:00"),
    (YOGA, "Yoga findet jetzt immer dienstags statt", "06-15 18:00, 06-22 18:00"),
    (YOGA, "ab Juli ist Yoga freitags", "07-02 18:00, 07-09 18:00"),
    (YOGA, "Yoga bis Juli", "06-14 18:00, 06-16 18:00"),
    (YOGA, "yoga moet om de twee weken", "06-14 18:00, 06-16 18:00, 06-28 18:00"),
    (YOGA, "yoga is nu op dinsdag", "06-15 18:00, 06-22 18:00"),
    (BINS, "Müll rausbringen jeden Freitag um 20 Uhr", "06-11 20:00, 06-18 20:00"),
    (REPORT, "the weekly report is on Mondays at 10:00", "06-14 10:00, 06-21 10:00"),
    (DRINKS, "friday drinks every Thursday", "06-10 17:30, 06-17 17:30"),
]
"""A stored task, what is asked, and its next occurrences."""

UNSURE = [
    (None, "skip yoga tomorrow"),
    (None, "pause yoga until Friday"),
    (None, "put yoga on hold for now"),
    (None, "move yoga to friday"),
    (None, "add friday to yoga as well"),
    (None, "Überspringe Yoga morgen"),
    (None, "verschieb Yoga auf Freitag"),
    (None, "Tabletten zusätzlich auch um 20 Uhr"),
    (None, "what do I have this week"),
    (None, "sla yoga morgen over"),
    (None, "verzet yoga naar vrijdag"),
    (None, "kun je yoga verzetten naar dinsdag"),
    (YOGA, "kun je yoga verzetten naar dinsdag"),
    (STANDUP, "move standup to Saturday"),
    (STANDUP, "verschiebe Standup auf morgen um 11 Uhr"),
    (STANDUP, "move this week's standup to 10:00"),
    (STANDUP, "move the next three standups to 10:00"),
    (STANDUP, "shift standup by a day"),
    (STANDUP, "move yoga's standup to friday"),
    (YOGA, "move the yoga mat to the attic"),
    (YOGA, "am Mittwoch Yoga erst um 19 Uhr"),
    (("Yoga", "every Monday at 8:00"), "bring yoga forward by 9 hours"),
]

WORK = [
    (None, "cancel the gym membership on oct 1", "once, on 2027-10-01 at 09:00"),
    (STANDUP, "kündige das Abo am 1. Oktober", "einmal, am 1. Oktober 2027 um 09:00"),
    (YOGA, "move the car to the garage on friday at 9:00", "once, on 2027-06-11 at 09:00"),
    (YOGA, "verwijder de oude logs elke nacht om 3 uur", "every day at 03:00"),
    (YOGA, "verplaats de auto naar de garage vrijdag om 9 uur", "once, on 2027-06-11 at 09:00"),
    (YOGA, "show me the sales report every monday at 9:00", "every Monday at 09:00"),
    (YOGA, "delete the old logs every day at 3am", "every day at 03:00"),
]


@try_each("task, text, occurrences", CHANGES, sim=open_sim)
def test_a_change_affects_what_it_names(sim: Simulation, task: tuple[str, str], text: str, occurrences: str) -> None:
    """Times replace times, days replace days, exceptions are subtracted, and one occurrence moves alone."""
    drafted, stored = draft(sim, text, task)
    assert drafted.decision == "UPDATE"
    assert drafted.task_id == stored
    wanted = occurrences.split(", ")
    changed = sim.app.confirm(drafted, owner="ada")
    found = sim.app.upcoming(changed.id, len(wanted))
    assert [f"{each.astimezone(ZONE):%m-%d %H:%M}" for each in found] == wanted


@try_each("task, text", UNSURE, sim=open_sim)
def test_what_changes_a_task_makes_none(sim: Simulation, task: tuple[str, str] | None, text: str) -> None:
    """Without the task, or if it is not clear how it changes, there is nothing to confirm."""
    assert draft(sim, text, task)[0].draft_token is None


@try_each(
    "titles, text, labels",
    [
        # Its title and one time: another one, or a change?
        (["Call mum"], "call mum at 5pm", ["a new task", "Call mum"]),
        (["Yoga"], "yoga next Monday at 20:00", ["a new task", "Yoga"]),
        (["Yoga"], "morgen um 9 Uhr Yoga", ["eine neue Aufgabe", "Yoga"]),
        (["Stretch"], "remind me to stretch every 3 hours", ["a new task", "Stretch"]),
        # A title that begins with it.
        (["Yoga"], "yoga class every Friday at 9:00", ["a new task", "Yoga"]),
        (["Report"], "report the costs every Friday at 9:00", ["a new task", "Report"]),
        (["Yoga"], "yoga really should be every Tuesday", ["a new task", "Yoga"]),
        (["Yoga", "Yoga class"], "yoga class for kids every Friday at 9:00", ["a new task", "Yoga", "Yoga class"]),
        # It begins with the title.
        (["Yoga with Ann", "Yoga with Ben"], "yoga on Tuesdays", ["a new task", "Yoga with Ann", "Yoga with Ben"]),
        (
            ["Yoga with Ann", "Yoga with Ben"],
            "yoga should be on Tuesdays",
            ["a new task", "Yoga with Ann", "Yoga with Ben"],
        ),
        (["Zwemmen met Bo"], "zwemmen elke dinsdag om 19 uur", ["a new task", "Zwemmen met Bo"]),
        # Which one, and no new one.
        (["Yoga", "Yoga"], "yoga every Tuesday at 19:00", ["Yoga", "Yoga"]),
        (["Yoga with Ann", "Yoga with Ben"], "yoga until July", ["Yoga with Ann", "Yoga with Ben"]),
        (["Yoga"], "make yoga monthly", []),
    ],
    sim=open_sim,
)
def test_it_is_asked_whether_a_task_is_meant(sim: Simulation, titles: list[str], text: str, labels: list[str]) -> None:
    """If a title is, or begins with, one of the owner's, or the other way round. Each answer settles it."""
    for title in titles:
        store(sim, title)

    def ask(text: str, **more: str) -> DraftResult:
        return sim.app.draft(text, timezone="Europe/Berlin", owner="ada", context={"handler": "remind", **more})

    drafted = ask(text)
    assert drafted.draft_token is None
    (question,) = drafted.questions
    assert sorted(each.label for each in question.answers) == sorted(labels)
    for answer in question.answers:
        again = ask(answer.text or text, **(answer.context or {}))
        assert again.draft_token is not None, answer
        assert again.task_id == (answer.context or {}).get("taskId")


@try_each(
    "text",
    [
        "buy yoga mat every Friday at 9:00",
        "Yogamatte kaufen jeden Freitag um 9 Uhr",
        '"Yoga" every Tuesday at 19:00',
        "remind me to yoga with Ben every Friday at 9:00",
        "pilates every Tuesday at 19:00",
        "call the gym every Friday at 9:00",
        "stretch every morning at 9:00",
    ],
    sim=open_sim,
)
def test_another_title_is_a_new_task(sim: Simulation, text: str) -> None:
    """Nothing is asked about it."""
    for title in ("Yoga", "Call mum", "Morning"):
        store(sim, title)
    drafted = draft(sim, text, None)[0]
    assert (drafted.decision, drafted.draft_token is None) == ("CREATION", False)


@try_each("text", ["yoga every Tuesday at 19:00", "yoga class tomorrow at 9:00"], sim=open_sim)
def test_an_ended_task_is_not_meant(sim: Simulation, text: str) -> None:
    """Nor one that was deleted."""
    for ended in (sim.app.cancel, sim.app.delete):
        ended(store(sim, "Yoga"))
    assert draft(sim, text, None)[0].decision == "CREATION"


@try_each("task, text, description", WORK, sim=open_sim)
def test_work_is_a_new_task(sim: Simulation, task: tuple[str, str] | None, text: str, description: str) -> None:
    """With a schedule of its own, and no stored task of that name."""
    drafted, _ = draft(sim, text, task)
    assert (drafted.decision, drafted.draft_token is None) == ("CREATION", False)
    assert drafted.description.startswith(description)


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ("move standup to 10:00", "06-14 10:00, 06-15 10:00"),
        ("standup half an hour later", "06-14 09:45, 06-15 09:45"),
        ("Standup auch samstags", "06-12 09:15, 06-14 09:15"),
    ],
)
def test_what_was_skipped_stays_skipped(sim: Simulation, change: str, left: str) -> None:
    """Through a later change of the time or of the days."""
    for text in ("skip standup today", "skip standup tomorrow"):
        drafted = (
            draft(sim, text, STANDUP)[0]
            if "today" in text
            else sim.app.draft(text, timezone="Europe/Berlin", owner="ada")
        )
        sim.app.confirm(drafted, owner="ada")
    changed = sim.app.confirm(sim.app.draft(change, timezone="Europe/Berlin", owner="ada"), owner="ada")
    found = sim.app.upcoming(changed.id, 2)
    assert [f"{each.astimezone(ZONE):%m-%d %H:%M}" for each in found] == left.split(", ")


def test_what_was_moved_stays_moved(sim: Simulation) -> None:
    """Through a later change of the rest."""
    sim.app.confirm(draft(sim, "move tomorrow's standup to 11:00", STANDUP)[0], owner="ada")
    later = sim.app.draft("standup half an hour later", timezone="Europe/Berlin", owner="ada")
    changed = sim.app.confirm(later, owner="ada")
    found = sim.app.upcoming(changed.id, 3)
    assert [f"{each.astimezone(ZONE):%d %H:%M}" for each in found] == ["10 09:45", "11 11:00", "14 09:45"]
