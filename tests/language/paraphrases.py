"""Paraphrases: one meaning in many orders, words, fillers and typing errors, with an oracle of its own.

A phrase is drawn as facets (which days, at what times, within which bounds), each with the ways to say it in a
language. The facets come in any order, with politeness, titles, punctuation and capitals around them, and one letter is
mistyped now and then. What is meant is known from the facets: a plain walk over the calendar lists its times, and
no part of `cloudsched.language` is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from random import Random
from typing import NamedTuple

from tests.language.walk import NOW, WEEKEND, WORK, ZONE, On, any_day, both, but, dom, month, nth, walk, wd

from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.language import read

_SHOWN = 6


class Tongue(NamedTuple):
    """What one language says for each facet; ``{}`` stands for a name or a number."""

    days: tuple[str, ...]
    every: tuple[str, ...]
    plural: tuple[str, ...]
    daily: tuple[str, ...]
    working: tuple[str, ...]
    weekend: tuple[str, ...]
    month_day: tuple[str, ...]
    last_day: tuple[str, ...]
    nth: tuple[str, ...]
    ordinals: dict[int, str]
    clock: tuple[str, ...]
    half: tuple[str, ...]
    noon: tuple[str, ...]
    without: tuple[str, ...]
    until: tuple[str, ...]
    months: tuple[str, ...]
    total: tuple[str, ...]
    polite: tuple[str, ...]
    title: tuple[str, ...]
    joined: str


TONGUES = {
    "en": Tongue(
        ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
        (
            "every {}",
            "each {}",
            "on {}s",
            "{}s",
            "every single {}",
            "always on {}",
            "weekly on {}",
            "once a week on {}",
        ),
        ("every {} and {}", "on {}s and {}s", "each {} and {}", "{}s & {}s", "every {}/{}"),
        ("every day", "daily", "each day", "everyday", "once a day", "all days", "each and every day"),
        ("every weekday", "on weekdays", "weekdays", "Monday to Friday", "Mon-Fri", "every working day", "workdays"),
        ("on weekends", "every weekend", "weekends", "Saturdays and Sundays", "every Sat/Sun"),
        ("on the {} of every month", "on the {} of each month", "monthly on the {}", "every month on the {}"),
        ("on the last day of every month", "every month end", "monthly on the last day", "every last day of the month"),
        ("on the {} {} of every month", "every {} {} of the month", "monthly on the {} {}", "each {} {} of the month"),
        {1: "first", 3: "third", -1: "last"},
        ("at {h}:{m:02}{p}", "{h}:{m:02} {p}", "@ {h}:{m:02}{p}", "at {H:02}:{m:02}", "at around {h}:{m:02}{p}"),
        ("at half past {h} in the {part}",),
        ("at noon", "at midday", "at 12 noon", "noon"),
        ("except {}s", "but not on {}s", "excluding {}s", "except on {}s", "skipping {}s", "other than {}s"),
        ("until {M} {d}, {y}", "till {d} {M} {y}", "ending {M} {d}, {y}", "up to and including {d} {M} {y}"),
        ("in {} and {}", "during {} and {}", "only in {} and {}"),
        ("for {} times", "{} times", "{} times in total", "for {} occurrences"),
        ("please {}", "{} please", "{}, thanks", "could you {}", "I want to {}", "{} sharp"),
        (
            "remind me to water the plants {}",
            "team lunch {}",
            "call mum {}",
            "{}: send the numbers",
            "{} - feed the cat",
        ),
        " and ",
    ),
    "de": Tongue(
        ("Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag"),
        ("jeden {}", "an jedem {}", "immer am {}", "jeweils am {}", "wöchentlich am {}", "{}s", "immer {}s"),
        ("jeden {} und {}", "{}s und {}s", "immer {}s und {}s"),
        ("täglich", "jeden Tag", "alle Tage", "tagtäglich", "an jedem Tag"),
        ("werktags", "jeden Werktag", "an Werktagen", "Montag bis Freitag", "Mo-Fr", "montags bis freitags"),
        ("immer am Wochenende", "an Wochenenden", "jedes Wochenende", "samstags und sonntags"),
        ("am {}. jedes Monats", "jeden Monat am {}.", "monatlich am {}.", "jeden {}. des Monats"),
        ("am letzten Tag jedes Monats", "jeden Monat am letzten Tag", "jeden Monatsletzten"),
        ("am {} {} jedes Monats", "jeden {} {} im Monat", "jeden {} {} des Monats"),
        {1: "ersten", 3: "dritten", -1: "letzten"},
        ("um {H} Uhr {m:02}", "um {H}:{m:02} Uhr", "um {H:02}:{m:02}", "gegen {H}:{m:02} Uhr", "{H}:{m:02} Uhr"),
        ("um halb {n} {Part}",),
        ("mittags um 12", "um 12 Uhr mittags", "um 12 Uhr"),
        ("außer {}s", "aber nicht {}s", "ohne {}s", "ausgenommen {}s"),
        ("bis zum {d}. {M} {y}", "bis {d}. {M} {y}", "bis einschließlich {d}. {M} {y}"),
        ("im {} und {}", "nur im {} und {}"),
        ("{} mal", "{} mal insgesamt"),
        ("bitte {}", "{} bitte", "{}, danke"),
        ("erinnere mich {}", "Müll rausbringen {}", "{}: Zahlen schicken"),
        " und ",
    ),
    "nl": Tongue(
        ("maandag", "dinsdag", "woensdag", "donderdag", "vrijdag", "zaterdag", "zondag"),
        ("elke {}", "iedere {}", "altijd op {}", "wekelijks op {}", "op {}en", "{}s", "elke week op {}"),
        ("elke {} en {}", "{}s en {}s", "op {}en en {}en", "iedere {} en iedere {}"),
        ("dagelijks", "elke dag", "iedere dag", "alle dagen", "één keer per dag"),
        (
            "elke werkdag",
            "op werkdagen",
            "doordeweeks",
            "maandag t/m vrijdag",
            "ma-vr",
            "van maandag tot en met vrijdag",
        ),
        ("elk weekend", "in de weekenden", "ieder weekend", "zaterdags en zondags", "elke za en zo"),
        ("op de {}e van elke maand", "elke maand op de {}e", "maandelijks op de {}e", "elke {}e van de maand"),
        ("op de laatste dag van elke maand", "elke maand op de laatste dag", "elke laatste dag van de maand"),
        (
            "op de {} {} van elke maand",
            "elke {} {} van de maand",
            "maandelijks op de {} {}",
            "iedere {} {} van de maand",
        ),
        {1: "eerste", 3: "derde", -1: "laatste"},
        (
            "om {H} uur {m:02}",
            "om {H}:{m:02} uur",
            "om {H:02}:{m:02}",
            "om {H}.{m:02} uur",
            "rond {H}:{m:02}",
            "{H}u{m:02}",
        ),
        ("om half {n} {part}", "{part} om half {n}"),
        ("om 12 uur 's middags", "om twaalf uur", "om 12 uur"),
        ("behalve op {}", "behalve {}", "maar niet op {}", "uitgezonderd {}en", "niet op {}en"),
        ("tot {d} {M} {y}", "tot en met {d} {M} {y}", "t/m {d} {M} {y}"),
        ("in {} en {}", "alleen in {} en {}"),
        ("{} keer", "{} maal", "{} keer in totaal"),
        ("{} graag", "{} alsjeblieft", "kun je {}", "{}, bedankt"),
        (
            "herinner me {} aan de vuilnis",
            "vuilnis buiten zetten {}",
            "{}: cijfers versturen",
            "{} planten water geven",
            "herinner me eraan om mama te bellen {}",
        ),
        " en ",
    ),
}
_MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
}
_PARTS = {  # the words for the morning, from 7 to 11, and the evening, from 19 to 21
    "en": ("morning", "evening"),
    "de": ("morgens", "abends"),
    "nl": ("'s ochtends", "'s avonds"),
}


class Paraphrase(NamedTuple):
    """A phrase, the local times that it means, whether there are no more, and whether a letter is mistyped."""

    text: str
    language: str
    expected: tuple[str, ...]
    ends: bool
    is_mistyped: bool


class _Days(NamedTuple):
    text: str
    on: On
    is_weekly: bool


def make(random: Random, count: int, languages: Sequence[str] = tuple(TONGUES)) -> Iterator[Paraphrase]:
    made = 0
    while made < count:
        one = _make_one(random, languages[made % len(languages)])
        if one is not None:
            made += 1
            yield one


def _make_one(random: Random, code: str) -> Paraphrase | None:
    tongue = TONGUES[code]
    days, (at, times) = _make_days(random, tongue, code), _make_times(random, tongue, code)
    parts, on, end, most = [days.text, at], days.on, None, _SHOWN
    bound = random.choice(("", "", "without", "until", "months", "count"))
    if bound == "without" and days.is_weekly:
        out = random.randrange(7)
        if not any(days.on(date(2026, 11, 16) + timedelta(days=day)) and day != out for day in range(7)):
            return None
        parts.append(_pick(random, tongue.without).format(_plural(tongue.days[out], code)))
        on = both(days.on, but(wd(out)))
        if not days.on(date(2026, 11, 16) + timedelta(days=out)):
            return None  # an exception to nothing
    elif bound == "until":
        end = NOW.date() + timedelta(days=random.randrange(70, 400))
        name = _MONTHS[code].split()[end.month - 1]
        parts.append(_pick(random, tongue.until).format(d=end.day, M=name, y=end.year))
    elif bound == "months" and days.is_weekly:
        chosen = sorted(random.sample(range(12), 2))
        names = [_MONTHS[code].split()[each] for each in chosen]
        parts.append(_pick(random, tongue.months).format(*names))
        on = both(days.on, month(*(each + 1 for each in chosen)))
    elif bound == "count" and len(times) == 1:
        most = random.randrange(3, 6)
        parts.append(_pick(random, tongue.total).format(most))
    if random.random() < 0.5:
        parts[0], parts[1] = parts[1], parts[0]
    # "monthly on the 5th 3 times" and "am 3. bis 5. Februar" need a comma for people, too
    text = random.choice((" ", " ", ", ") if days.is_weekly and "12" not in at else (", ",)).join(parts)
    is_mistyped = random.random() < 0.05
    if is_mistyped:
        mistyped = _mistype(random, text)
        text, is_mistyped = (mistyped, True) if mistyped else (text, False)
    elif random.random() < 0.3:
        text = _pick(random, (*tongue.polite, *tongue.title)).format(text)
    text = random.choice((str, str, str, str.upper, lambda words: words[0].upper() + words[1:]))(text)
    text += random.choice(("", "", "", ".", "!"))
    ends = bound in {"until", "count"}
    expected = tuple(walk(on, times, most, end=end))
    return Paraphrase(text, code, expected, ends and len(expected) < _SHOWN, is_mistyped) if expected else None


def format_ordinal(number: int) -> str:
    teens = number % 100 in range(11, 14)
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _pick(random: Random, ways: Sequence[str]) -> str:
    return random.choice(list(ways))


def _plural(name: str, code: str) -> str:
    """Return a weekday as it stands before a plural's s, or instead of it."""
    return name.lower() if code == "de" else name


def _make_days(random: Random, tongue: Tongue, code: str) -> _Days:  # noqa: PLR0911 -- one for each kind
    kind = random.choice(("day", "one", "one", "two", "working", "weekend", "month day", "last", "nth"))
    if kind == "day":
        return _Days(_pick(random, tongue.daily), any_day, is_weekly=True)
    if kind == "working":
        return _Days(_pick(random, tongue.working), WORK, is_weekly=True)
    if kind == "weekend":
        return _Days(_pick(random, tongue.weekend), WEEKEND, is_weekly=True)
    if kind == "month day":
        number = random.randrange(2, 29)
        said = format_ordinal(number) if code == "en" else str(number)
        return _Days(_pick(random, tongue.month_day).format(said), dom(number), is_weekly=False)
    if kind == "last":
        return _Days(_pick(random, tongue.last_day), dom(-1), is_weekly=False)
    chosen = random.sample(range(7), 2 if kind == "two" else 1)
    if kind == "nth":
        number = random.choice(list(tongue.ordinals))
        text = _pick(random, tongue.nth).format(tongue.ordinals[number], tongue.days[chosen[0]])
        return _Days(text, nth(number, chosen[0]), is_weekly=False)
    way = _pick(random, tongue.plural if kind == "two" else tongue.every)
    names = [_name_in(way, tongue.days[day], code) for day in chosen]
    return _Days(way.format(*names), wd(*chosen), is_weekly=True)


def _name_in(way: str, name: str, code: str) -> str:
    """Return a weekday's name in the form that a way of saying it needs."""
    return _plural(name, code) if "{}s" in way else name


def _make_times(random: Random, tongue: Tongue, code: str) -> tuple[str, list[str]]:
    kind = random.random()
    if kind < 0.1:
        return _pick(random, tongue.noon), ["12:00"]
    if kind < 0.2:
        is_late = random.random() < 0.5
        hour = random.randrange(19, 22) if is_late else random.randrange(7, 11)
        part = _PARTS[code][is_late]
        small = (hour - 1) % 12 + 1
        text = _pick(random, tongue.half).format(h=small, n=small + 1, part=part, Part=part)
        return text, [f"{hour:02}:30"]
    way = _pick(random, tongue.clock)
    hours = sorted(random.sample(range(7, 23), 2 if kind < 0.35 else 1))
    minute = random.choice((5, 15, 30, 45))
    texts = [way.format(h=(hour - 1) % 12 + 1, H=hour, m=minute, p="am" if hour < 12 else "pm") for hour in hours]
    return tongue.joined.join(texts), [f"{hour:02}:{minute:02}" for hour in hours]


def _mistype(random: Random, text: str) -> str | None:
    """Return a text with two neighbours swapped, or one letter missing, in the middle of a long word."""
    words = text.split(" ")
    long = [at for at, word in enumerate(words) if len(word) >= 7 and word.isalpha()]
    if not long:
        return None
    at = random.choice(long)
    place = random.randrange(2, len(words[at]) - 3)
    word = words[at]
    swapped = word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    words[at] = swapped if random.random() < 0.5 and swapped != word else word[:place] + word[place + 1 :]
    return " ".join(words)


def judge(one: Paraphrase) -> str:
    """Return ``right``, ``asked``, ``refused`` or ``wrong``; a mistyped phrase may be asked about."""
    zone = load_tzinfo(ZONE)
    now = NOW.replace(tzinfo=zone)
    reading = read(one.text, now=now, timezone=ZONE, locale=one.language)
    if reading.schedule is None:
        asked = reading.kind == "question"
        return "right" if asked and one.is_mistyped else "asked" if asked else "refused"
    found = reading.schedule.anchor(now).upcoming(now, len(one.expected) + one.ends)
    local = tuple(at.astimezone(zone).replace(tzinfo=None).isoformat() for at in found)
    return "right" if local == one.expected else "wrong"
