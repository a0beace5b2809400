"""The words in which schedules are told: the name of each part of a schedule in one language.

`describe` decides on the content and its order. These classes have the wording, one for each language. The
reader of the same language (`cloudsched.language`) understands what they write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import date, timedelta

    from cloudsched.domain.recurrence.rrule import Frequency, NthDay, Skip

WORKING_DAYS: Final = (0, 1, 2, 3, 4)
WEEKEND: Final = (5, 6)
_SHORTEST_RANGE: Final = 3
_ORDINAL_ENDINGS: Final = {1: "st", 2: "nd", 3: "rd"}
_LENGTHS: Final = (86_400, 3600, 60, 1)


class English:
    """English. Another language has other words, and other methods only where its grammar differs."""

    weekdays: tuple[str, ...] = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    months: tuple[str, ...] = (
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    )
    last_and = "and"
    to = "to"
    left_out: Mapping[str, str] = {
        "start": "its start",
        "phase": "from when it counts",
        "ends": "when each rule ends",
        "rules": "its further rules",
        "days": "a limit to some of these days",
        "times": "a limit to some of these times",
        "dates": "some of its single dates",
        "clock changes": "what happens when clocks change",
        "fractions": "fractions of a second",
    }
    on_the_clock = "on the clock"
    """Counted from the full hour, or from midnight."""
    _every_day = "every {}"
    _every_working_day = "every weekday"
    _on_day = "on {}"
    _on_working_days = "on weekdays"
    _on_number = "on the {}"
    _day = " day"
    _of_month = " of the month"
    _on_day_of_year = "on the {} day of the year"
    _on_counted_day: Mapping[str, str] = {
        "working": "on the {} working day",
        "weekend": "on the {} weekend day",
    }
    _on_position = "on the {} of {}"
    _in_week = "in week {}"
    _in_month = "in {}"
    at = "at {}"
    _at_numbers = ("at minute {}", "in hour {}", "at second {}")
    from_to = "from {} to {}"
    weeks_begin_on = "weeks begin on {}"
    _first_on = "first on {}"
    _starting = "starting {}"
    until = "until {}"
    _time = " at {}"
    only_where: Mapping[str, str] = {
        "month": "only in months that have that day",
        "year": "only in years that have that day",
        "week": "only in years that have that week",
    }
    following = "wherever its owner is ({})"
    once = "once, on {}"
    added = "extra on {}"
    excepted = "except {}"
    summary = "a summary, which leaves out {}"
    _lengths: Sequence[tuple[str, str]] = (
        ("day", "days"),
        ("hour", "hours"),
        ("minute", "minutes"),
        ("second", "seconds"),
    )
    """One and several of each, as they stand after "in"."""
    _an_instant = "less than a second"
    _now = "now"
    _after = "once, in {}"
    _zones: Mapping[str, str] = {
        "same": "{} is UTC.",
        "ahead": "{} is {} ahead of UTC.",
        "behind": "{} is {} behind UTC.",
    }
    lacking: Mapping[str, str] = {
        "date": "a {number} {name}",
        "day": "a {ordinal} day",
        "weekday": "a {ordinal} {name}",
        "place": "a {ordinal} such day",
        "free day": "a {ordinal} free day",
        "week": "a week {number}",
        "day of year": "a day {number}",
    }
    """A day that some months or years do not have, or a week."""
    _period: Mapping[str, str] = {"month": "of each month", "year": "of the year", "named": "of {}"}
    _say_instead = 'say "the {edge} {day} {period}"'
    _edges = ("last", "first")
    _any_day = "day"
    write_instead = "write {}"
    rarely: Mapping[str, Mapping[str, str]] = {
        "only": {
            "month": "It runs only in months that have {}. To run in each, {}.",
            "year": "It runs only in years that have {}. To run in each, {}.",
            "week": "It runs only in years that have {}. To run in each, {}.",
        },
        "also": {
            "month": "It runs on {} only in months that have one. For one that each has, {}.",
            "year": "It runs on {} only in years that have one. For one that each has, {}.",
            "week": "It runs in {} only in years that have one. For one that each has, {}.",
        },
    }
    """What runs only in months or years that have a day, and what does so also on other days."""
    assumed: Mapping[str, str] = {
        "owner": "It follows {}, who is in {}.",
        "UTC": "No time zone was given, so it is UTC.",
        "person": "No time zone was given, so it is that of its owner, {}.",
        "lost": "It does not run on {}, because the day from which that is moved, {}, is before its start.",
    }
    _effects: Mapping[str, str] = {
        "SKIP": 'except on days of "{}"',
        "BEFORE": 'moved before days of "{}"',
        "AFTER": 'moved after days of "{}"',
        "business day": "moved to the {} day of the month that is not on {}",
    }

    def join(self, items: Iterable[str]) -> str:
        """Return a list: ``a, b and c``."""
        *others, last = items
        if others:
            return f"{', '.join(others)} {self.last_and} {last}"
        return last

    def every(self, unit: Frequency, interval: int) -> str:
        """Return ``every 2 weeks``."""
        name = ("year", "month", "week", "day", "hour", "minute", "second")[unit]
        if interval == 1:
            return f"every {name}"
        return f"every {interval} {name}s"

    def every_weekday(self, days: Sequence[int]) -> str:
        """Return ``every Monday and Friday``, or ``every weekday``."""
        if tuple(days) == WORKING_DAYS:
            return self._every_working_day
        return self._every_day.format(self._name_days(days))

    def on_weekdays(self, days: Sequence[int]) -> str:
        """Return ``on Monday and Friday``, or ``on weekdays``."""
        if tuple(days) == WORKING_DAYS:
            return self._on_working_days
        return self._on_day.format(self._name_days(days))

    def on_nth_weekdays(self, days: Sequence[NthDay], *, of_year: bool) -> str:
        """Return ``on the last Friday and the 2nd Tuesday``. A day without a number is every such day."""
        text = f"on {self.join(self._name_nth_day(nth, self.weekdays[day]) for nth, day in days)}"
        return f"{text} of the year" if of_year else text

    def _name_nth_day(self, nth: int, name: str) -> str:
        if nth:
            return f"the {self.ordinal(nth)} {name}"
        return f"every {name}"

    def on_days_of_month(self, numbers: Sequence[int], *, of_month: bool) -> str:
        """Return ``on the 1st, 15th and last day``, with ``of the month`` if nothing else names the month."""
        text = self._on_number.format(self.join(self.list_ordinals(numbers)))
        if min(numbers) < 0:
            text += self._day
        if of_month:
            text += self._of_month
        return text

    def on_dates(self, numbers: Sequence[int], months: Sequence[int]) -> str:
        """Return ``on the 24th of December``."""
        return f"{self.on_days_of_month(numbers, of_month=False)} of {self.join(self.list_months(months))}"

    def on_days_of_year(self, numbers: Sequence[int]) -> str:
        """Return ``on the 100th day of the year``."""
        return self._on_day_of_year.format(self.join(self.list_ordinals(numbers)))

    def on_counted_days(self, positions: Sequence[int], days: Sequence[int]) -> str:
        """Return ``on the last working day``."""
        kind = "weekend"
        if tuple(days) == WORKING_DAYS:
            kind = "working"
        return self._on_counted_day[kind].format(self.join(map(self.ordinal, positions)))

    def on_positions(self, positions: Sequence[int], days: Sequence[int]) -> str:
        """Return ``on the 1st and last of Monday to Friday``."""
        return self._on_position.format(
            self.join(map(self.ordinal, positions)),
            self.join(self.list_weekdays(days)),
        )

    def in_weeks(self, numbers: Sequence[int]) -> str:
        """Return ``in week 20``."""
        return self._in_week.format(self.join(map(str, numbers)))

    def in_months(self, months: Sequence[int]) -> str:
        """Return ``in June and July``."""
        return self._in_month.format(self.join(self.list_months(months)))

    def except_weekdays(self, days: Sequence[int]) -> str:
        """Return ``except Mondays and Tuesdays``."""
        return f"except {self.join(f'{self.weekdays[day]}s' for day in days)}"

    def if_weekdays(self, days: Sequence[int]) -> str:
        """Return ``if it is a Friday``."""
        *others, last = (f"a {self.weekdays[day]}" for day in days)
        if others:
            return f"if it is {', '.join(others)} or {last}"
        return f"if it is {last}"

    def at_numbers(self, hours: Sequence[int], minutes: Sequence[int], seconds: Sequence[int]) -> str:
        """Return ``at minute 0 and 20 in hour 9 to 17``."""
        parts = zip(self._at_numbers, (minutes, hours, seconds), strict=True)
        return " ".join(said.format(self.join(self.list_numbers(numbers))) for said, numbers in parts if numbers)

    def where_missing(self, skip: Skip) -> str:
        """Return what runs instead of a day that a month does not have."""
        neighbour = "first day after"
        if skip == "BACKWARD":
            neighbour = "last day before"
        return f"or the {neighbour}, where there is no such day"

    def first_on(self, day: date, time: str) -> str:
        """Return ``first on Friday 17 April 2026``. ``time`` may be empty."""
        return self._first_on.format(self.name_date(day)) + self._name_time(time)

    def starting(self, day: date, time: str) -> str:
        """Return ``starting Friday 17 April 2026``. ``time`` may be empty."""
        return self._starting.format(self.name_date(day)) + self._name_time(time)

    def count(self, number: int) -> str:
        """Return ``10 times``."""
        return "1 time" if number == 1 else f"{number} times"

    def delayed(self, delay: timedelta) -> str:
        """Return ``now``, or ``once, in 10 minutes``."""
        if not delay:
            return self._now
        return self._after.format(self.join(self._list_lengths(delay) or [self._an_instant]))

    def _list_lengths(self, span: timedelta) -> list[str]:
        seconds = span.days * 86_400 + span.seconds
        found = []
        for length, (one, several) in zip(_LENGTHS, self._lengths, strict=True):
            count, seconds = divmod(seconds, length)
            if count:
                found.append(f"{count} {several if count > 1 else one}")
        return found

    def explain_zone(self, name: str, ahead: timedelta) -> str:
        """Return ``Etc/GMT+3 is 3 hours behind UTC``, as a sentence."""
        if not ahead:
            return self._zones["same"].format(name)
        side = "ahead" if ahead.days >= 0 else "behind"
        return self._zones[side].format(name, self.join(self._list_lengths(abs(ahead))))

    def name_lacking(self, kind: str, number: int, name: str = "") -> str:
        """Return ``a 31st day`` or ``a 5th Monday``, by a key of `lacking`."""
        return self.lacking[kind].format(number=number, ordinal=self.ordinal(number), name=name)

    def name_period(self, period: str, month: int | None) -> str:
        """Return ``of each month``, ``of the year``, or ``of May``."""
        if month is not None:
            return self._period["named"].format(self.months[month - 1])
        return self._period[period]

    def say_instead(self, number: int, period: str, weekday: int | None = None) -> str:
        """Return ``say "the last Monday of May"``, or the first one if the number counts from the end."""
        if weekday is None:
            day = self._any_day
        else:
            day = self.weekdays[weekday]
        return self._say_instead.format(edge=self._edges[number < 0], day=day, period=period)

    def moment(self, day: date, time: str) -> str:
        """Return ``2028-01-01 at 09:00``. ``time`` may be empty."""
        return f"{day:%Y-%m-%d}{self._name_time(time)}"

    def adjusted(self, kind: str, named: Sequence[str | int]) -> str:
        """Return an effect on the occurrences, by its kind and what it names: a number of days comes first."""
        numbers = [self.ordinal(each) for each in named if isinstance(each, int)]
        names = [each for each in named if isinstance(each, str)]
        if not numbers:
            return self._effects[kind].format(*names)
        return self._effects[kind].format(*numbers, self.join(f'"{each}"' for each in names))

    def union(self, rules: Iterable[str]) -> str:
        """Return several rules, which apply together."""
        return f"; {self.last_and} ".join(rules)

    def ordinal(self, number: int) -> str:
        """Return ``2nd``, ``last`` or ``2nd last``."""
        if number < 0:
            if number == -1:
                return "last"
            return f"{self.ordinal(-number)} last"
        if number % 100 in range(11, 14):
            return f"{number}th"
        return f"{number}{_ORDINAL_ENDINGS.get(number % 10, 'th')}"

    def name_date(self, day: date) -> str:
        """Return ``Friday 17 April 2026``."""
        return f"{self.weekdays[day.weekday()]} {day.day} {self.months[day.month - 1]} {day.year}"

    def _name_time(self, time: str) -> str:
        return self._time.format(time) if time else ""

    def _name_days(self, days: Sequence[int]) -> str:
        return self.join(self.weekdays[day] for day in days)

    def list_months(self, months: Sequence[int]) -> list[str]:
        """Return the names of months."""
        return [self.months[month - 1] for month in months]

    def list_numbers(self, numbers: Sequence[int]) -> list[str]:
        """Return ascending numbers with runs of three or more as ranges: ``9 to 17``."""
        return [self._name_range(run, str) for run in find_runs(numbers)]

    def list_ordinals(self, numbers: Sequence[int]) -> list[str]:
        """Return ordinals, those from the end last, with runs of three or more as ranges: ``1st to 7th``."""
        from_start = [self._name_range(run, self.ordinal) for run in find_runs([n for n in numbers if n > 0])]
        return from_start + [self.ordinal(number) for number in sorted(numbers) if number < 0]

    def list_weekdays(self, days: Sequence[int]) -> list[str]:
        """Return days in a week's order, with runs of three or more as ranges: ``Monday to Friday``."""
        week = len(self.weekdays)
        numbers = [days[0] + (day - days[0]) % week for day in days]
        runs = find_runs(numbers)
        return [self._name_range(run, lambda number: self.weekdays[number % week]) for run in runs]

    def _name_range(self, run: Sequence[int], name: Callable[[int], str]) -> str:
        if len(run) == 1:
            return name(run[0])
        return f"{name(run[0])} {self.to} {name(run[-1])}"


def find_runs(numbers: Sequence[int]) -> list[list[int]]:
    """Return ascending numbers as runs of three or more, and single ones."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts: list[list[int]] = []
    for run in runs:
        if len(run) >= _SHORTEST_RANGE:
            parts.append(run)
        else:
            parts += ([number] for number in run)
    return parts


class German(English):
    """German."""

    weekdays: tuple[str, ...] = ("Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag")
    months: tuple[str, ...] = (
        "Januar",
        "Februar",
        "März",
        "April",
        "Mai",
        "Juni",
        "Juli",
        "August",
        "September",
        "Oktober",
        "November",
        "Dezember",
    )
    last_and = "und"
    to = "bis"
    left_out: Mapping[str, str] = {
        "start": "den Beginn",
        "phase": "ab wann gezählt wird",
        "ends": "wann jede Regel endet",
        "rules": "die weiteren Regeln",
        "days": "eine Beschränkung auf manche dieser Tage",
        "times": "eine Beschränkung auf manche dieser Zeiten",
        "dates": "manche der einzelnen Termine",
        "clock changes": "was bei der Zeitumstellung geschieht",
        "fractions": "Bruchteile von Sekunden",
    }
    on_the_clock = "nach der Uhr"
    _every_day = "jeden {}"
    _every_working_day = "jeden Werktag"
    _on_day = "am {}"
    _on_working_days = "an Werktagen"
    _on_number = "am {}"
    _day = " Tag"
    _of_month = " des Monats"
    _on_day_of_year = "am {} Tag des Jahres"
    _on_counted_day: Mapping[str, str] = {"working": "am {} Werktag", "weekend": "am {} Wochenendtag"}
    _on_position = "am {} von {}"
    _in_week = "in Woche {}"
    _in_month = "im {}"
    at = "um {}"
    _at_numbers = ("zur Minute {}", "in Stunde {}", "zur Sekunde {}")
    from_to = "von {} bis {}"
    weeks_begin_on = "Wochen beginnen am {}"
    _first_on = "erstmals am {}"
    _starting = "ab {}"
    until = "bis {}"
    _time = " um {}"
    only_where: Mapping[str, str] = {
        "month": "nur in Monaten mit diesem Tag",
        "year": "nur in Jahren mit diesem Tag",
        "week": "nur in Jahren mit dieser Woche",
    }
    following = "egal wo sein Besitzer ist ({})"
    once = "einmal, am {}"
    added = "zusätzlich am {}"
    excepted = "außer am {}"
    summary = "eine Zusammenfassung ohne {}"
    _lengths: Sequence[tuple[str, str]] = (
        ("Tag", "Tagen"),
        ("Stunde", "Stunden"),
        ("Minute", "Minuten"),
        ("Sekunde", "Sekunden"),
    )
    _an_instant = "weniger als einer Sekunde"
    _now = "jetzt"
    _after = "einmal, in {}"
    _zones: Mapping[str, str] = {
        "same": "{} ist UTC.",
        "ahead": "{} ist UTC um {} voraus.",
        "behind": "{} ist {} hinter UTC.",
    }
    lacking: Mapping[str, str] = {
        "date": "einen {number}. {name}",
        "day": "einen {ordinal} Tag",
        "weekday": "einen {ordinal} {name}",
        "place": "einen {ordinal} solchen Tag",
        "free day": "einen {ordinal} freien Tag",
        "week": "eine Woche {number}",
        "day of year": "einen Tag {number}",
    }
    _period: Mapping[str, str] = {"month": "jedes Monats", "year": "des Jahres", "named": "im {}"}
    _say_instead = "sag „am {edge} {day} {period}“"
    _edges = ("letzten", "ersten")
    _any_day = "Tag"
    write_instead = "schreib {}"
    rarely: Mapping[str, Mapping[str, str]] = {
        "only": {
            "month": "Es läuft nur in Monaten, die {} haben. Damit es in jedem läuft, {}.",
            "year": "Es läuft nur in Jahren, die {} haben. Damit es in jedem läuft, {}.",
            "week": "Es läuft nur in Jahren, die {} haben. Damit es in jedem läuft, {}.",
        },
        "also": {
            "month": "In Monaten ohne {} läuft es an diesem nicht. Für einen Tag, den jeder hat, {}.",
            "year": "In Jahren ohne {} läuft es an diesem nicht. Für einen Tag, den jedes hat, {}.",
            "week": "In Jahren ohne {} läuft es in dieser nicht. Für eine, die jedes hat, {}.",
        },
    }
    assumed: Mapping[str, str] = {
        "owner": "Es richtet sich nach {} in {}.",
        "UTC": "Ohne Zeitzone gilt UTC.",
        "person": "Ohne Zeitzone gilt die der Person, {}.",
        "lost": "Es läuft nicht am {}: Der Tag, von dem das verschoben wäre, {}, liegt vor dem Beginn.",
    }
    _effects: Mapping[str, str] = {
        "SKIP": 'außer an Tagen von "{}"',
        "BEFORE": 'verschoben vor Tagen von "{}"',
        "AFTER": 'verschoben nach Tagen von "{}"',
        "business day": "verschoben auf den {} Tag des Monats, der nicht frei ist in {}",
    }

    @override
    def every(self, unit: Frequency, interval: int) -> str:
        one = (
            "jedes Jahr",
            "jeden Monat",
            "jede Woche",
            "jeden Tag",
            "jede Stunde",
            "jede Minute",
            "jede Sekunde",
        )
        several = ("Jahre", "Monate", "Wochen", "Tage", "Stunden", "Minuten", "Sekunden")
        if interval == 1:
            return one[unit]
        return f"alle {interval} {several[unit]}"

    @override
    def on_nth_weekdays(self, days: Sequence[NthDay], *, of_year: bool) -> str:
        text = self.join(self._name_nth_day(nth, self.weekdays[day]) for nth, day in days)
        return f"{text} des Jahres" if of_year else text

    @override
    def _name_nth_day(self, nth: int, name: str) -> str:
        if nth:
            return f"am {self.ordinal(nth)} {name}"
        return f"jeden {name}"

    @override
    def on_dates(self, numbers: Sequence[int], months: Sequence[int]) -> str:
        # Each by itself: a range with a month would be read as a span of time.
        names = map(self.ordinal, sorted(numbers, key=lambda number: (number < 0, number)))
        text = f"am {self.join(names)}"
        if min(numbers) < 0:
            text += " Tag im"
        elif len(months) > 1:
            text += " im"
        return f"{text} {self.join(self.list_months(months))}"

    @override
    def except_weekdays(self, days: Sequence[int]) -> str:
        return f"außer {self.join(f'{self.weekdays[day].lower()}s' for day in days)}"

    @override
    def if_weekdays(self, days: Sequence[int]) -> str:
        *others, last = (f"ein {self.weekdays[day]}" for day in days)
        if others:
            return f"wenn es {', '.join(others)} oder {last} ist"
        return f"wenn es {last} ist"

    @override
    def where_missing(self, skip: Skip) -> str:
        neighbour = "am ersten Tag danach"
        if skip == "BACKWARD":
            neighbour = "am letzten Tag davor"
        return f"oder {neighbour}, wo dieser Tag fehlt"

    @override
    def count(self, number: int) -> str:
        return f"{number} Mal"

    @override
    def ordinal(self, number: int) -> str:
        if number > 0:
            return f"{number}."
        named = {-1: "letzten", -2: "vorletzten", -3: "drittletzten", -4: "viertletzten", -5: "fünftletzten"}
        return named.get(number, f"{-number}.-letzten")

    @override
    def name_date(self, day: date) -> str:
        return f"{self.weekdays[day.weekday()]}, {self._name_day(day)}"

    @override
    def moment(self, day: date, time: str) -> str:
        return self._name_day(day) + self._name_time(time)

    def _name_day(self, day: date) -> str:
        return f"{day.day}. {self.months[day.month - 1]} {day.year}"


LANGUAGES: Final[Mapping[str, English]] = {"en": English(), "de": German()}


def find_words(locale: str) -> English:
    """Return the words of a locale's language, such as ``de`` or ``de-AT``, or English if it has none."""
    return LANGUAGES.get(locale.replace("_", "-").partition("-")[0].lower(), LANGUAGES["en"])
