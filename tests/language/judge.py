"""How phrases with titles are read: rows with every answer that is acceptable, and titles around bare phrases.

    python -m tests.language.judge        prints the table of docs/contributors/add-language.md

The rows of ``judged/en.json``, ``de.json`` and ``nl.json`` were written by people's habits and without a look at the
grammar, those of ``own.json`` with it. Each has its ``phrase``, ``now`` and ``zone``, and in ``expect`` all that a
careful person would accept, the best first: ``rule`` (RRULEs with their times, from ``start``, until, count, without
the dates of ``except``), ``once``, ``ask``, ``refuse``.
``title`` lists the titles that are right. ``examples.json`` has phrases as people type them into assistants.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import date, datetime, time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from dateutil.rrule import rrulestr

from cloudsched.language import Reading, read

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cloudsched.domain.schedules.schedule import Schedule

HERE: Final = Path(__file__).parent
COMPARED: Final = 8
"""The number of occurrences that are compared."""
_SETS: Final = {"en": "blind", "de": "blind", "nl": "blind"}
_MOST_LISTED: Final = 60
_LAST_YEAR: Final = 2075


def load_cases(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file that create a task by words alone."""
    rows: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))
    return [each for each in rows if each["intent"] == "create" and "context" not in each and "payload" not in each]


def list_expected(answer: dict[str, Any], now: datetime, zone: ZoneInfo) -> list[datetime]:
    """Return the first local times of an accepted answer, in the zone of the phrase."""
    own = ZoneInfo(answer["zone"]) if answer.get("zone") else zone

    def to_local(at: datetime) -> datetime:
        return at.replace(tzinfo=own).astimezone(zone).replace(tzinfo=None)

    if answer["kind"] == "once":
        return [to_local(datetime.fromisoformat(answer["at"]))]
    found = {to_local(at) for rule, times in answer["rules"] for at in _list_rule(answer, rule, times, now)}
    ahead = sorted(at for at in found if at > now)
    return ahead[: min(answer.get("count") or COMPARED, COMPARED)]


def _list_rule(answer: dict[str, Any], rule: str, times: Sequence[str], now: datetime) -> Iterator[datetime]:
    start = date.fromisoformat(answer["start"]) if answer.get("start") else now.date()
    until = answer.get("until")
    last = None if until is None else datetime.fromisoformat(until if "T" in until else f"{until}T23:59:59")
    for said in times or ["00:00"]:
        dates = rrulestr(rule, dtstart=datetime.combine(start, time.fromisoformat(said)))
        for number, at in enumerate(dates):
            if number > _MOST_LISTED or at.year > _LAST_YEAR or (last is not None and at > last):
                break
            if at.date().isoformat() not in (answer.get("except") or ()):
                yield at


def judge_reading(case: dict[str, Any], reading: Reading) -> str:
    """Return ``right``, ``asked``, ``refused`` or ``wrong``: another schedule than all accepted ones."""
    kinds = {each["kind"] for each in case["expect"]}
    if reading.kind == "question":
        return "right" if "ask" in kinds else "asked"
    if reading.schedule is None:
        is_enough = "refuse" in kinds or ("ask" in kinds and case["group"] != "clear")
        return "right" if is_enough else "refused"
    return judge_schedule(case, reading.schedule)


def judge_schedule(case: dict[str, Any], schedule: Schedule) -> str:
    """Return ``right``, or ``wrong``: another schedule than all accepted ones."""
    now, zone = datetime.fromisoformat(case["now"]), ZoneInfo(case["zone"])
    found = list_local(schedule, now.replace(tzinfo=zone), zone)
    answers = [each for each in case["expect"] if each["kind"] in {"once", "rule"}]
    return "right" if any(_are_equal(found, each, now, zone) for each in answers) else "wrong"


def _are_equal(found: list[datetime], answer: dict[str, Any], now: datetime, zone: ZoneInfo) -> bool:
    wanted = list_expected(answer, now, zone)
    if answer["kind"] == "rule" and not any(times for _, times in answer["rules"]):  # no time of day was said
        return [at.date() for at in found] == [at.date() for at in wanted]
    return found == wanted


def list_local(schedule: Schedule, now: datetime, zone: ZoneInfo) -> list[datetime]:
    """Return the first local times of a schedule."""
    found = schedule.anchor(now).upcoming(now, COMPARED)
    return [at.astimezone(zone).replace(tzinfo=None) for at in found]


def read_case(case: dict[str, Any], locale: str | None) -> Reading:
    """Return how the phrase of a row is read."""
    now = datetime.fromisoformat(case["now"]).replace(tzinfo=ZoneInfo(case["zone"]))
    return read(case["phrase"], now=now, timezone=case["zone"], locale=locale)


def is_title(case: dict[str, Any], title: str | None) -> bool:
    """Return whether a title is one of those that are right."""
    return not case["title"] or _plain(title or "") in {_plain(each) for each in case["title"]}


def _plain(title: str) -> str:
    return " ".join(title.lower().replace("’", "'").strip(" .,!?:;\"'").split())  # noqa: RUF001 - people type it


def judge_cases(cases: Sequence[dict[str, Any]]) -> tuple[Counter[str], list[str]]:
    """Return how many rows are read how, ``titled`` among the right ones, and those that are not right."""
    score: Counter[str] = Counter()
    missed = []
    for case in cases:
        reading = read_case(case, case["lang"])
        verdict = judge_reading(case, reading)
        score[verdict] += 1
        titled = verdict == "right" and (reading.schedule is None or is_title(case, reading.title))
        score["titled"] += titled
        if not titled:
            missed.append(f"{'title' if verdict == 'right' else verdict}: {case['phrase']}")
    return score, missed


PLAIN_TITLES: Final = {
    "en": """Buy milk; Call mom; Team meeting; Water the plants; Buy 40th birthday gift; Pay rent; Walk the dog; Book
        flights to Rome; Clean the kitchen; Read 20 pages; Check server logs; Send invoice to Acme; Take vitamins;
        Dentist appointment; Review pull requests; Order groceries; Vacuum the living room; Pick up kids from school;
        Prepare slides for the board; Renew passport; Practice guitar; Update the website; Wash the car; Feed the cat;
        Write blog post; Do laundry; Call the bank about the loan; Research hotels; Fix the leaking tap; Email Sarah the
        contract; Study for the exam; Plan the trip; Return library books; Get a haircut; Run payroll; Cancel gym
        membership; Start the dishwasher; Move money to savings; Skip rope; Backup the laptop""",
    "de": """Milch kaufen; Mama anrufen; Teammeeting; Blumen gießen; Miete überweisen; Müll rausbringen; Steuererklärung
        abgeben; Zahnarzttermin; Bericht schreiben; Wäsche waschen; Server prüfen; Rechnung an Acme senden; Vitamine
        nehmen; Auto waschen; Hund ausführen; Einkaufen gehen; Küche putzen; Kinder von der Schule abholen; Passwort
        ändern; Backup starten; Gitarre üben; Präsentation vorbereiten; Reisepass verlängern; Filter wechseln; Protokoll
        verschicken; Heizung ablesen; Tabletten nehmen; Bücher zurückbringen; Geschenk für Oma besorgen; Angebot an den
        Kunden schicken; Fenster putzen; Pflanzen umtopfen; Rezept abholen; Sport machen; Katze füttern""",
    "nl": """Melk kopen; Mama bellen; Teamoverleg; Planten water geven; Huur overmaken; Vuilnis buiten zetten;
        Belastingaangifte doen; Tandartsafspraak; Verslag schrijven; Was draaien; Server controleren; Factuur naar
        Acme sturen; Vitamines innemen; Auto wassen; Hond uitlaten; Boodschappen doen; Keuken poetsen; Kinderen van
        school halen; Wachtwoord veranderen; Back-up starten; Gitaar oefenen; Presentatie voorbereiden; Paspoort
        verlengen; Filter vervangen; Notulen versturen; Meterstanden opnemen; Medicijnen innemen; Boeken terugbrengen;
        Cadeau voor oma kopen; Offerte naar de klant sturen; Ramen lappen; Planten verpotten; Recept ophalen; Kat
        voeren; Sportschool opzeggen""",
}
"""Titles as they stand in public lists of tasks."""
TIME_TITLES: Final = {
    "en": """Friday demo; Sunday lunch; Good morning message; Morning pages; Call April about the May invoices; 24 hour
        fitness; Second opinion; Plan next week; Half marathon training; Time sheet; Black Friday deals; Watch 60
        Minutes; Night shift handover; Afternoon tea; Christmas shopping; Year in review; Prepare Monday meeting;
        Evening walk; Second breakfast; March for science; Summer camp forms""",
    "de": """Freitagsdemo; Sonntagsessen kochen; Monatsbericht schreiben; Morgenroutine; Abendessen kochen; Mittagspause
        machen; Wochenplan schreiben; Halbmarathon Training; Nachtschicht Übergabe; Weihnachtsgeschenke kaufen; Montag
        Meeting vorbereiten; Tagesschau gucken; Stunden eintragen; Zweites Frühstück; Sommerreifen wechseln; Tag der
        offenen Tür planen; Morgen Andrea anrufen; Wochenmarkt besuchen""",
    "nl": """Vrijdagborrel; Zondagslunch koken; Maandrapport schrijven; Ochtendroutine; Avondeten koken; Middagdutje
        doen; Weekplanning maken; Halve marathon trainen; Nachtdienst overdragen; Kerstcadeaus kopen; Maandag overleg
        voorbereiden; Journaal kijken; Uren invullen; Tweede ontbijt; Zomerbanden wisselen; Dag van de arbeid plannen;
        Jan bellen; Weekmarkt bezoeken; Boek over maart lezen; Wandelen om het huis""",
}
"""Titles with words of time in them."""
BARE: Final = {
    "en": """every day at 9am; every Monday at 10:00; on Friday at 3pm; tomorrow at 14:00; every weekday at 8:30; on the
        last day of each month at 5pm; every 2 weeks on Monday at 9:00; in 20 minutes; every Thursday at 8pm except
        April 2; every Monday at 10:00 until the end of June; first Monday of every month at noon; twice a week on
        Tuesday and Friday at 7am; every day at 18:00 America/Chicago; every 15 minutes between 9am and 5pm on weekdays;
        every day at 8am for 10 days; the day after tomorrow at 9:15 in the morning; every Friday at 12:00 starting May
        1st""",
    "de": """jeden Tag um 9 Uhr; jeden Montag um 10:00 Uhr; am Freitag um 15 Uhr; morgen um 14 Uhr; werktags um 8:30;
        am letzten Tag jedes Monats um 17 Uhr; alle zwei Wochen montags um 9 Uhr; in 20 Minuten; jeden Donnerstag um 20
        Uhr außer am 2. April; jeden Montag um 10 Uhr bis Ende Juni; am ersten Montag jedes Monats um 12 Uhr; dienstags
        und freitags um 7 Uhr; übermorgen um 14 Uhr; täglich um 19 Uhr bis 1. Mai; jeden zweiten Tag um 20 Uhr; am 1.
        und 15. jedes Monats um 9 Uhr""",
    "nl": """elke dag om 9 uur; elke maandag om 10:00 uur; op vrijdag om 15 uur; morgen om 14 uur; doordeweeks om
        8:30; op de laatste dag van elke maand om 17 uur; om de twee weken op maandag om 9 uur; over 20 minuten; elke
        donderdag om 20 uur behalve op 2 april; elke maandag om 10 uur tot eind juni; op de eerste maandag van elke
        maand om 12 uur; dinsdags en vrijdags om 7 uur; overmorgen om 14 uur; dagelijks om 19 uur tot en met 1 mei; om
        de dag om 20 uur; op de 1e en 15e van elke maand om 9 uur""",
}
"""Phrases that say only when."""
AROUND: Final = {"en": "remind me {when} to {what}", "de": "erinnere mich {when} daran, {what}"} | {
    "nl": "herinner me {when} aan {what}"
}
NOW: Final = datetime(2026, 3, 11, 10, 20, tzinfo=ZoneInfo("Europe/Berlin"))


def split_list(text: str) -> list[str]:
    """Return the texts of a list."""
    return [" ".join(each.split()) for each in text.split(";")]


def judge_titles(titles: Sequence[str], language: str, count: int, seed: int = 7) -> tuple[Counter[str], list[str]]:
    """Return how titles around bare phrases are read: the schedule has to be that of the bare phrase."""
    rng = Random(seed)  # noqa: S311 - phrases of a test
    score: Counter[str] = Counter()
    missed = []
    for _ in range(count):
        when, what = rng.choice(split_list(BARE[language])), rng.choice(titles)
        around = AROUND[language].format(when=when, what=what[0].lower() + what[1:])
        text = rng.choice([f"{what} {when}", f"{when} {what}", around])
        bare, reading = (read(each, now=NOW, timezone="Europe/Berlin", locale=language) for each in (when, text))
        verdict = {"question": "asked", "refusal": "refused"}.get(reading.kind, "wrong")
        if reading.schedule is not None and reading.schedule == bare.schedule:
            verdict = "right" if _plain(reading.title or "") == _plain(what) else "title"
        score[verdict] += 1
        if verdict != "right":
            missed.append(f"{verdict}: {text}")
    return score, missed


def main() -> None:
    """Print the scores as a table, and what is missed."""
    print("| phrases | right | and the title | asked | refused | wrong |\n|---|---|---|---|---|---|")  # noqa: T201 - this is the output
    missed = []
    for name, cases in list_groups():
        score, some = judge_cases(cases)
        missed += some
        _print(f"{name} ({len(cases)})", score, len(cases))
    for language in BARE:
        for kind, titles in (("titles", PLAIN_TITLES), ("titles with words of time", TIME_TITLES)):
            score, some = judge_titles(split_list(titles[language]), language, 400)
            missed += sorted(set(some))[:10]
            score["titled"], score["right"] = score["right"], score["right"] + score["title"]
            _print(f"{kind} around bare phrases, {language} (400)", score, 400)
    print("\n" + "\n".join(f"- {each}" for each in missed))  # noqa: T201 - the same


def list_groups() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the rows by language and group."""
    rows = [(path.stem, case) for path in sorted((HERE / "judged").glob("*.json")) for case in load_cases(path)]
    for name in dict.fromkeys((stem, case["lang"], case["group"]) for stem, case in rows):
        chosen = [case for stem, case in rows if (stem, case["lang"], case["group"]) == name]
        yield f"{_SETS.get(name[0], name[0])}, {name[1]}, {name[2]}", chosen


def _print(name: str, score: Counter[str], total: int) -> None:
    shares = [f"{100 * score[kind] / total:.1f} %" for kind in ("right", "titled", "asked", "refused", "wrong")]
    print(f"| {name} | {' | '.join(shares)} |")  # noqa: T201 - the same


if __name__ == "__main__":
    main()
