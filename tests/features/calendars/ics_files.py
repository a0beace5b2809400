"""Calendars such as others write: generated from a seed, with all that RFC 5545 has for events that recur."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from dateutil.rrule import rrulestr

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Nuuk", "Asia/Kolkata")
OWN_RULES = "FREQ=YEARLY;BYMONTH={month};BYDAY=-1SU"
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
DAY = timedelta(days=1)


class FileWriter:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - the same choices on each run
        self.own_zone = f"Own {seed}"
        self.lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//tests//EN", *self._own_zone_lines()]

    def write(self) -> str:
        for number in range(self.chance.randint(3, 6)):
            self._add_series(f"{number}@tests")
        return "\r\n".join([*self.lines, "END:VCALENDAR", ""])

    def _own_zone_lines(self) -> list[str]:
        summer, winter = self.chance.choice((("+0330", "+0230"), ("-0300", "-0430")))
        return [
            *("BEGIN:VTIMEZONE", f"TZID:{self.own_zone}"),
            *("BEGIN:DAYLIGHT", "DTSTART:20200329T020000", f"RRULE:{OWN_RULES.format(month=3)}"),
            *(f"TZOFFSETFROM:{winter}", f"TZOFFSETTO:{summer}", "END:DAYLIGHT"),
            *("BEGIN:STANDARD", "DTSTART:20191027T030000", f"RRULE:{OWN_RULES.format(month=10)}"),
            *(f"TZOFFSETFROM:{summer}", f"TZOFFSETTO:{winter}", "END:STANDARD", "END:VTIMEZONE"),
        ]

    def _add_series(self, uid: str) -> None:
        chance = self.chance
        self.kind = chance.choice(("date", "date", "floating", "UTC", "zone", "zone", "own"))
        self.zone = chance.choice(ZONES)
        first = datetime(2026, 1, 1) + DAY * chance.randint(0, 500)  # noqa: DTZ001 - as it is written
        self.start = first if self.kind == "date" else first.replace(hour=chance.randint(0, 23), minute=30)
        rule = self._choose_rule()
        found = (
            list(rrulestr(rule.removesuffix("Z"), dtstart=self.start).xafter(self.start, 60, inc=True))
            if rule
            else [self.start]
        )
        lines = [f"DTSTART{self._format(self.start)}", *self._choose_length(self.start)]
        lines += [f"RRULE:{rule}"] if rule else []
        dates = self._choose_dates()
        lines += dates
        left_out = chance.sample(found, min(len(found), chance.choice((0, 0, 1, 3))))
        lines += [f"EXDATE{self._format(each, in_utc=chance.random() < 0.3)}" for each in left_out]
        lines += ["STATUS:CANCELLED"] if chance.random() < 0.05 else []
        self._add_event(uid, *lines, "SEQUENCE:2")
        if chance.random() < 0.1:
            self._add_event(uid, f"DTSTART{self._format(self.start - 3 * DAY)}", "SEQUENCE:1")
        changed = sorted(chance.sample(found, min(len(found), chance.choice((0, 1, 3)))))
        for each in changed:
            if each not in left_out:
                self._change(uid, each, may_follow="PERIOD" not in str(dates))

    def _change(self, uid: str, at: datetime, *, may_follow: bool) -> None:
        """Change an occurrence, and maybe what follows, unless periods do: the other program leaves their lengths."""
        chance = self.chance
        follows = may_follow and chance.random() < 0.25
        parameter = ";RANGE=THISANDFUTURE" if follows else ""
        lines = [f"RECURRENCE-ID{parameter}{self._format(at, in_utc=not follows and chance.random() < 0.3)}"]
        moved = at + DAY * chance.randint(-3, 9)
        if self.kind != "date":
            moved += timedelta(hours=chance.randint(-5, 5))
        lines += [f"DTSTART{self._format(moved)}", *self._choose_length(moved)]
        lines += ["STATUS:CANCELLED"] if chance.random() < 0.3 else []
        self._add_event(uid, *lines, "SEQUENCE:2")

    def _choose_rule(self) -> str:
        chance, start = self.chance, self.start
        weekday = WEEKDAYS[start.weekday()]
        rule = chance.choice(
            (
                "",
                "",
                f"FREQ=DAILY;INTERVAL={chance.randint(2, 50)}",
                f"FREQ=WEEKLY;INTERVAL={chance.randint(1, 5)};BYDAY={weekday}",
                "FREQ=MONTHLY",
                f"FREQ=MONTHLY;BYDAY={(start.day - 1) // 7 + 1}{weekday}",
                "FREQ=YEARLY",
                f"FREQ=YEARLY;BYMONTH={start.month};BYMONTHDAY={start.day}",
            )
        )
        if not rule or (chance.random() < 0.5 and "LY;INTERVAL" not in rule):  # or else they are too many days
            return rule
        if chance.random() < 0.5:
            return f"{rule};COUNT={chance.randint(1, 40)}"
        until = start + DAY * chance.randint(1, 900)
        in_utc = "" if self.kind in {"date", "floating"} else "Z"
        return f"{rule};UNTIL={until:%Y%m%d}" + ("" if self.kind == "date" else f"T120000{in_utc}")

    def _choose_length(self, start: datetime) -> list[str]:
        """Return an end that is not within two hours of midnight, where elapsed time and the clock's differ."""
        chance = self.chance
        if self.kind == "date":
            end = start + DAY * chance.randint(1, 6)
            return chance.choice(([], [f"DTEND{self._format(end)}"], ["DURATION:P3D"], ["DURATION:P1W"]))
        end = start.replace(hour=12) + DAY * chance.randint(1, 4)
        length = end - start
        return chance.choice(
            (
                [],
                [f"DTEND{self._format(end)}"],
                [f"DURATION:P{length.days}DT{length.seconds}S"],
                ["DURATION:P2D"] if 2 < start.hour < 22 else [],
            )
        )

    def _choose_dates(self) -> list[str]:
        chance = self.chance
        dates = [self.start + DAY * chance.randint(5, 700) for _ in range(chance.choice((0, 0, 1, 3)))]
        if self.kind != "date" and chance.random() < 0.4:
            form = self._format(self.start)
            parameters = form.rpartition(":")[0]
            return [
                f"RDATE;VALUE=PERIOD{parameters}:{self._format(each).rpartition(':')[2]}/P1DT1H"
                if 2 < each.hour < 20
                else f"RDATE{self._format(each)}"
                for each in dates
            ]
        return [f"RDATE{self._format(each)}" for each in dates]

    def _format(self, when: datetime, *, in_utc: bool = False) -> str:
        """Return the end of a property, such as ``;VALUE=DATE:20270101``."""
        if self.kind == "date":
            return f";VALUE=DATE:{when:%Y%m%d}"
        if self.kind == "zone" and in_utc:
            return f":{when.replace(tzinfo=ZoneInfo(self.zone)).astimezone(UTC):%Y%m%dT%H%M%SZ}"
        names = {"floating": "", "UTC": "", "zone": f";TZID={self.zone}", "own": f';TZID="{self.own_zone}"'}
        return f"{names[self.kind]}:{when:%Y%m%dT%H%M%S}{'Z' if self.kind == 'UTC' else ''}"

    def _add_event(self, uid: str, *lines: str) -> None:
        self.lines += ["BEGIN:VEVENT", f"UID:{uid}", "DTSTAMP:20260101T000000Z", "SUMMARY:Away"]
        self.lines += [*lines, "BEGIN:VALARM", "ACTION:AUDIO", "TRIGGER;VALUE=DATE-TIME:20260101T000000Z"]
        self.lines += ["DURATION:PT5M", "REPEAT:1", "END:VALARM", "END:VEVENT"]


def days_between(first: date, last: date) -> set[date]:
    """Return the days from one to another, both included."""
    return {first + timedelta(number) for number in range((last - first).days + 1)}
