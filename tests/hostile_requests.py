"""Requests that are made to cost the processor as much as they can: for each operation of the OpenAPI document.

The document says where a caller may put something: each field of each body at every depth, each parameter and header.
There go values that are dear to somebody: to parsers, to regular expressions, to checks of every element, to searches
of schedules. So an operation or a field that is added is attacked without a line here.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache, partial
from typing import Any, Final
from urllib.parse import quote

from werkzeug.test import TestResponse

from cloudsched.domain.documents.batch_change import MAX_IDS
from cloudsched.features.calendars.ics_days import MAX_EVENTS
from cloudsched.testing import Simulation
from cloudsched.web.api.openapi import build_document
from cloudsched.web.api.parse import MAX_BODY
from cloudsched.web.api.request_bodies import MAX_BATCH, MAX_PAGE

Json = dict[str, Any]

ROOM: Final = MAX_BODY - 8_000
"""How large a hostile value is: as much as fits into a body beside what must stand around it."""
LINE: Final = 8_000
"""How much of a request's line or of a header the servers accept."""
ALL_BY_IDS: Final = "all tasks, by their ids"
"""What a batch asks for that changes nothing yet."""
MAX_DEPTH: Final = 4
"""How deep in a body fields are replaced."""


@dataclass(frozen=True, slots=True)
class HostileRequest:
    """One request, and what is hostile about it."""

    operation: str
    what: str
    method: str
    path: str
    make_body: Callable[[], bytes] | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def body(self) -> bytes | None:
        """The body, made whenever it is asked for: most are large, and of many requests only some are sent."""
        return None if self.make_body is None else self.make_body()

    def __str__(self) -> str:
        size = "" if (body := self.body) is None else f", {len(body)} bytes"
        return f"{self.operation}: {self.what}{size}"


ALL_HOURS = ",".join(map(str, range(24)))
ALL_SECONDS = ",".join(map(str, range(60)))
START = {"dtstart": "2027-01-01T09:00:00", "timezone": "Europe/Paris"}
WORDS = "every monday and tuesday except every friday until the last day of may at 9 and 10 or "

RULES: Final = {
    "a sparse rule": "FREQ=SECONDLY;INTERVAL=86413;BYHOUR=0;BYMINUTE=0;BYSECOND=0",
    "a rule that is never true": "FREQ=MINUTELY;INTERVAL=1439;BYHOUR=3;BYMINUTE=3;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",
    "a rule of all seconds": f"FREQ=YEARLY;BYHOUR=0,12;BYMINUTE={ALL_SECONDS};BYSECOND={ALL_SECONDS};BYSETPOS=-1,1",
    "positions in hours": f"FREQ=HOURLY;BYMINUTE={ALL_SECONDS};BYSECOND={ALL_SECONDS};BYSETPOS=-1,300",
    "positions in sparse minutes": "FREQ=MINUTELY;INTERVAL=97;BYSECOND=1,2;BYSETPOS=2;BYMONTH=2;BYMONTHDAY=29",
    "a large COUNT": "FREQ=DAILY;BYHOUR=9,10;COUNT=100000",
    "a sparse COUNT": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO;COUNT=100000",
    "leap days on Mondays": "FREQ=YEARLY;INTERVAL=7;BYWEEKNO=53;BYDAY=MO",
    "a far interval": "FREQ=HOURLY;INTERVAL=57;BYHOUR=1,3,12;BYMONTHDAY=-5,9,13,25;BYMONTH=9;BYDAY=FR,SA,WE",
    "numbers of days": "FREQ=DAILY;INTERVAL=997;BYYEARDAY=" + ",".join(map(str, range(1, 300, 7))),
    "every second of every day": f"FREQ=DAILY;BYHOUR={ALL_HOURS};BYMINUTE={ALL_SECONDS};BYSECOND={ALL_SECONDS}",
    "every second of a day a year": (
        f"FREQ=YEARLY;INTERVAL=7;BYHOUR={ALL_HOURS};BYMINUTE={ALL_SECONDS};BYSECOND={ALL_SECONDS};COUNT=99999"
    ),
}
ALL_WEEK = "MO,TU,WE,TH,FR,SA,SU"


def hostile_schedules() -> Iterator[tuple[str, Json | str]]:
    """Yield schedules whose search is long, and texts that are long to read."""
    for name, rule in RULES.items():
        yield name, {"rrule": rule, **START}
        yield f"{name}, on the wall clock", {"rrule": rule, "subDaily": "wall", "fold": "both", **START}
        yield f"{name}, from long ago", {"rrule": rule, **START, "dtstart": "1850-01-01T09:00:00"}
        yield f"{name}, with a full calendar", {"rrule": rule, **START, "calendars": [{"id": "full", "on": "after"}]}
        yield f"{name}, with weekends", {"rrule": rule, **START, "calendars": [{"id": "weekends", "on": "before"}]}
        yield f"{name}, following its owner", {"rrule": rule, **START, "followsOwner": True}
        for business_day in (23, -23):
            calendars = {"calendars": ["weekends"], "businessDay": business_day}
            yield f"{name}, on a business day", {"rrule": rule, **START, **calendars}
    sparse = [f"FREQ=SECONDLY;INTERVAL={86_413 + 2 * each};BYHOUR=0;BYMINUTE=0;BYSECOND=0" for each in range(20)]
    yield "20 sparse rules", {"rrule": sparse, **START}
    yield (
        "20 sparse rules with a full calendar",
        {"rrule": sparse, **START, "calendars": [{"id": "full", "on": "after"}]},
    )
    counts = [f"FREQ=DAILY;BYHOUR={each};COUNT=99999" for each in range(20)]
    yield "20 large COUNTs", {"rrule": counts, **START}
    yield "20 large COUNTs from long ago", {"rrule": counts, **START, "dtstart": "1850-01-01T09:00:00"}
    seconds = f"BYHOUR={ALL_HOURS};BYMINUTE={ALL_SECONDS};BYSECOND={ALL_SECONDS}"
    days = [f"FREQ=MONTHLY;BYMONTHDAY={1 + each};{seconds}" for each in range(20)]
    yield "20 rules of all seconds", {"rrule": days, **START}
    yield "20 rules of all seconds that are one", {"rrule": [f"FREQ=DAILY;{seconds}"] * 20, **START}
    rdates = [f"2{each // 300:03}-{1 + each // 25 % 12:02}-{1 + each % 25:02}T09:00:00" for each in range(1000)]
    for calendar in ("full", "almost-full", "dense"):
        own = {"calendars": [{"id": calendar, "on": "after"}]}
        yield f"added days, {calendar}", {"rdates": rdates, **START, **own}
        yield f"added and excluded days, {calendar}", {"rdates": rdates, "exdates": rdates[:-1], **START, **own}
    exdates = [f"2027-{1 + each // 28 % 12:02}-{1 + each % 28:02}" for each in range(1000)]
    yield "excluded days", {"rrule": "FREQ=SECONDLY", **START, "exdates": exdates}
    for calendar in ("full", "almost-full", "dense", "weekends"):
        for on in ("skip", "before", "after"):
            own = {"calendars": [{"id": calendar, "on": on}]}
            yield f"every second, {calendar}, {on}", {"rrule": "FREQ=SECONDLY", **START, **own}
            yield f"a day a year, {calendar}, {on}", {"rrule": "FREQ=YEARLY", **START, **own}
    for business_day in (1, -1, 23):
        also = {"calendars": ["weekends"], "businessDay": business_day}
        yield f"every second on business day {business_day}", {"rrule": "FREQ=SECONDLY", **START, **also}
    yield "words", WORDS * 40
    yield "many words", WORDS * 4000
    yield "numbers in words", "at 9 " * 20_000
    yield "cron", "*/1 " * 5
    yield "a long cron", ",".join(map(str, range(60))) + " * * * *" + "," * 50_000
    yield "iCalendar", "BEGIN:VCALENDAR\r\n" + "RRULE:FREQ=SECONDLY\r\n " * 40_000
    yield "blank", " " * ROOM


def hostile_values() -> Iterator[tuple[str, Any]]:
    """Yield the values that have ever been dear to a parser or a regular expression."""
    yield "blanks and a letter", " " * (ROOM - 1) + "a"
    yield "names", {f"{number:x}": 0 for number in range(ROOM // 9)}
    short: Any = [0] * 50_000
    for number in range(14):
        short = {f"{'k' * 1490}{number}": short}
    yield "fewer numbers below long names", short


def accepted_values() -> Iterator[tuple[str, Any]]:
    """Yield values that may be stored: what is accepted is read, copied, written and shown again."""
    yield "stored numbers", {"a": [0] * 60_000}
    yield "stored names", {f"{number:x}": {} for number in range(9_000)}
    yield "a stored text", "\U0001f600" * 15_000


def _hostile_texts() -> Iterator[tuple[str, bytes]]:
    """Yield bodies that no JSON library writes."""
    yield "a name twice", b"{" + b",".join(b'"%d":0' % number for number in range(90_000)) + b',"89999":0}'
    yield "many names twice", b"{" + b",".join(b'"%d":0' % (number % 40_000) for number in range(80_000)) + b"}"
    yield "one name", b"{" + b",".join([b'"a":0'] * (ROOM // 6)) + b"}"
    yield "open lists", b"[" * ROOM
    yield "open objects", b'{"a":' * (ROOM // 5)
    yield "blanks", b" " * ROOM
    yield "escapes", b'{"a":"' + b"\\u0041" * (ROOM // 6) + b'"}'
    yield "no UTF-8", b"\xff" * ROOM
    yield "digits", b'{"a":' + b"1" * ROOM + b"}"
    yield "a fraction", b'{"a":0.' + b"1" * ROOM + b"e-5}"


@lru_cache(maxsize=1)
def _document() -> Json:
    return build_document()


def _resolve(schema: Json) -> Json:
    while "$ref" in schema:
        schema = _document()["components"]["schemas"].get(schema["$ref"].rpartition("/")[2], {})
    for kind in ("anyOf", "oneOf", "allOf"):
        for each in schema.get(kind, ()):
            found = _resolve(each)
            if found.get("properties") or found.get("items"):
                return found
    return schema


def _iter_places(schema: Json, depth: int = 0) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths of the fields of a body."""
    schema = _resolve(schema)
    for name, each in schema.get("properties", {}).items():
        yield (name,)
        if depth < MAX_DEPTH:
            for rest in _iter_places(each, depth + 1):
                yield (name, *rest)
    if "items" in schema and depth < MAX_DEPTH:
        yield (0,)
        named = re.search(r"``(\w+)``", schema.get("description", ""))  # of items that are read one by one
        items = {"$ref": named[1]} if named and not schema["items"].get("properties") else schema["items"]
        for rest in _iter_places(items, depth + 1):
            yield (0, *rest)


def _replace(body: object, place: tuple[str | int, ...], value: object) -> object:
    """Return a body with a value at a place, made on the way if it is not there."""
    if not place:
        return value
    first, *rest = place
    if isinstance(first, int):
        items = list(body) if isinstance(body, list) and body else [{}]
        return [_replace(items[0], tuple(rest), value), *items[1:]]
    fields = dict(body) if isinstance(body, dict) else {}
    fields[first] = _replace(fields.get(first), tuple(rest), value)
    return fields


def _encode(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


_MARK: Final = "@hostile@"
_TASK: Final[Json] = {"owner": "ada", "title": "t", "handler": "anything", "payload": {}}


def _date(number: int) -> Json:
    """Return a schedule with a thousand excluded times that no other number's has, in the shortest form."""
    days = (f"{2027 + each // 300}{1 + each // 25 % 12:02}{1 + each % 25:02}" for each in range(1000))
    excluded = [f"{day}T09{number // 60:02}{number % 60:02}" for day in days]
    return {"rrule": "FREQ=DAILY", **START, "exdates": excluded}


def _put(base: object, place: tuple[str | int, ...], encoded: bytes) -> bytes:
    return _encode(_replace(copy.deepcopy(base), place, _MARK)).replace(_encode(_MARK), encoded)


def _repeat_task(make_body: Callable[[], bytes]) -> bytes:
    task = json.loads(make_body())["tasks"][0]
    some = {"tasks": [{**task, "title": str(number)} for number in range(MAX_BATCH)]}
    return _encode(some)[: MAX_BODY + 1]


def _date_tasks() -> bytes:
    dated = [{**_TASK, "title": str(each), "schedule": _date(each)} for each in range(MAX_BATCH)]
    return _encode({"tasks": dated})[: MAX_BODY + 1]


def _add_count(make_body: Callable[[], bytes]) -> bytes:
    return _encode({**json.loads(make_body()), "count": 1000})


def _empty() -> bytes:
    return b"{}"


def iter_hostile_requests(known: dict[str, str], ids: Sequence[str] = ()) -> Iterator[HostileRequest]:
    """Yield the requests.

    Args:
        known: What stands for the parameters of paths, by name.
        ids: Tasks that are stored.
    """
    values = {**dict(hostile_values()), **dict(accepted_values())}
    general = {name: _encode(value) for name, value in values.items()}
    texts = dict(_hostile_texts())
    schedules = [(name, _encode(each)) for name, each in hostile_schedules()]
    for path, methods in _document()["paths"].items():
        for method, operation in methods.items():
            name = operation["operationId"]
            filled = path
            for parameter, value in known.items():
                filled = filled.replace(f"{{{parameter}}}", quote(value))
            send = _Maker(name, method.upper(), filled)
            yield send("as it is", body=_empty if "requestBody" in operation else None)
            yield from _iter_parameters(send, operation, path, known)
            if "requestBody" in operation:
                yield from _iter_bodies(send, operation, texts, general, schedules)
            if name == "batch_change_tasks":
                named = {"action": "pause", "dryRun": True, "filter": {"ids": ids[:MAX_IDS] or ["daily"]}}
                yield send(ALL_BY_IDS, body=partial(_encode, named))
            if name == "batch_create_tasks":
                yield send("a thousand other dates in each task", body=_date_tasks)


@dataclass(frozen=True, slots=True)
class _Maker:
    operation: str
    method: str
    path: str

    def __call__(
        self, what: str, *, path: str | None = None, body: Callable[[], bytes] | None = None, **headers: str
    ) -> HostileRequest:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return HostileRequest(self.operation, what, self.method, path or self.path, body, named)


def _iter_parameters(send: _Maker, operation: Json, path: str, known: dict[str, str]) -> Iterator[HostileRequest]:
    body = _empty if "requestBody" in operation else None
    words = " ".join(f"a{each:02}" for each in range(100))
    texts = {
        "many words": words,
        "ten words": words[:39],
        "a long one": "a" * LINE,
        "digits": "9" * LINE,
        "commas": "a," * (LINE // 2),
        "tags": '"a",' * (LINE // 4),
    }
    for each in operation["parameters"]:
        for what, text in texts.items():
            said = f"{each['name']} is {what}"
            if each["in"] == "header":
                yield send(said, body=body, **{each["name"].replace("-", "_"): text})
            elif each["in"] == "query":
                yield send(said, body=body, path=f"{send.path}?{each['name']}={quote(text)[:LINE]}")
            else:
                filled = path.replace(f"{{{each['name']}}}", quote(text)[:LINE])
                for parameter, value in known.items():
                    filled = filled.replace(f"{{{parameter}}}", quote(value))
                yield send(said, body=body, path=filled)
    queries = {each["name"]: each for each in operation["parameters"] if each["in"] == "query"}
    widest = {
        "pageSize": "500",
        "calls": "false",
        "count": "1000",
        "until": "2099-01-01T00:00:00Z",
        "from": "1970-01-01T00:00:00Z",
    }
    wide = "&".join(f"{name}={value}" for name, value in widest.items() if name in queries)
    if wide:
        yield send("as much as there is", path=f"{send.path}?{wide}", body=body)
    yield send("parameters", body=body, path=f"{send.path}?{'&'.join(f'a{each}=' for each in range(LINE // 7))}")


def _iter_bodies(
    send: _Maker,
    operation: Json,
    texts: dict[str, bytes],
    general: dict[str, bytes],
    schedules: list[tuple[str, bytes]],
) -> Iterator[HostileRequest]:
    content = next(iter(operation["requestBody"]["content"].values()))
    bases = [each["value"] for each in content.get("examples", {}).values()] or [{}]
    for what, text in texts.items():
        yield send(what, body=text.__bytes__)
    places = list(dict.fromkeys(_iter_places(content["schema"])))
    for place in places:
        where = ".".join(map(str, place))
        for what, encoded in general.items():
            yield send(f"{where}: {what}", body=partial(_put, bases[0], place, encoded))
        yield from _iter_times(send, operation, bases[0], place, schedules)


def _iter_times(
    send: _Maker, operation: Json, base: object, place: tuple[str | int, ...], schedules: list[tuple[str, bytes]]
) -> Iterator[HostileRequest]:
    """Yield requests with schedules, and with texts that say when, where such a thing may stand."""
    where = ".".join(map(str, place))
    counts = "count" in _names_of(operation)
    if place[-1] == "schedule":
        for what, text in schedules:
            body = partial(_put, _without_words(base, place), place, text)
            yield send(f"{where}: {what}", body=body)
            if place[:2] == ("tasks", 0):
                yield send(f"{where}: {MAX_BATCH} times {what}", body=partial(_repeat_task, body))
            if counts:
                yield send(f"{where}: much of {what}", body=partial(_add_count, body))
    elif place[-1] in {"rrule", "ics", "text", "start", "from", "duration"}:
        for what, text in schedules:
            if text.startswith(b'"'):
                yield send(f"{where}: {what}", body=partial(_put, base, place, text))
    if place[-1] == "ics":
        for what, ics in hostile_calendars():
            yield send(f"{where}: {what}", body=partial(_put, {}, place, _encode(ics)))


def _names_of(operation: Json) -> Iterable[str]:
    """Return the names of the fields of an operation's body."""
    content = next(iter(operation["requestBody"]["content"].values()))
    names: Json = _resolve(content["schema"]).get("properties", {})
    return names


def _without_words(base: object, place: tuple[str | int, ...]) -> object:
    """Return a body in which a schedule may stand alone: no zone beside it."""
    base = copy.deepcopy(base)
    inner: Any = base
    for each in place[:-1]:
        inner = inner[int(each)] if isinstance(inner, list) else inner.setdefault(each, {})
    if isinstance(inner, dict):
        inner.pop("timezone", None)
    return base


def hostile_calendars() -> Iterator[tuple[str, str]]:
    """Yield iCalendar files that are long to read."""

    def calendar(*events: str) -> str:
        return "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n" + "".join(events) + "END:VCALENDAR\r\n"

    def event(*lines: str) -> str:
        return "".join(f"{line}\r\n" for line in ("BEGIN:VEVENT", *lines, "END:VEVENT"))

    many = ROOM // 140
    yield (
        "events of every day",
        calendar(*[event("DTSTART;VALUE=DATE:20270101", "RRULE:FREQ=DAILY", f"UID:{each}") for each in range(many)]),
    )
    yield (
        "events that never are",
        calendar(
            *[
                event(
                    "DTSTART;VALUE=DATE:20270101",
                    "RRULE:FREQ=DAILY;INTERVAL=7;BYMONTH=2;BYMONTHDAY=29;BYDAY=TU",
                    "UID:a",
                )
                for _ in range(many)
            ]
        ),
    )
    yield (
        "events of one day",
        calendar(*[event("DTSTART;VALUE=DATE:20270101", f"SUMMARY:{each}") for each in range(many)]),
    )
    plain = [event("DTSTART;VALUE=DATE:20270101", f"SUMMARY:{each}") for each in range(MAX_EVENTS)]
    yield "as many events as there may be", calendar(*plain)
    quoted = [event('DTSTART;X="a^b,c":20270101', 'SUMMARY;ALTREP="a:^b;c",d:e') for _ in range(MAX_EVENTS)]
    yield "events with unusual parameters", calendar(*quoted)
    yield "a long parameter", calendar(event('DTSTART;X="' + "a^" * (ROOM // 2 - 200) + '":20270101'))
    yield "a long plain parameter", calendar(event("DTSTART;X=" + "a " * (ROOM // 2 - 200) + ":20270101"))
    yield "open quotes", calendar(event('DTSTART;X="' * (ROOM // 12)))
    yield "escapes", calendar(event("DTSTART;VALUE=DATE:20270101", "SUMMARY:" + "\\\\" * (ROOM // 4 - 100)))
    dates = ",".join(["20270101"] * (ROOM // 10))
    yield "many dates", calendar(event("DTSTART;VALUE=DATE:20270101", f"RDATE;VALUE=DATE:{dates}"))
    zoned = event("DTSTART;TZID=Europe/Paris:20270101T000000", "RRULE:FREQ=SECONDLY;COUNT=9999", f"EXDATE:{dates}")
    yield "many excluded dates", calendar(zoned)
    yield "long ago", calendar(*[event("DTSTART;VALUE=DATE:18500101", "RRULE:FREQ=DAILY;COUNT=99999")] * many)
    yield "open events", "BEGIN:VEVENT\r\n" * (ROOM // 16)
    yield "folded lines", calendar(event("DTSTART;VALUE=DATE:20270101", "SUMMARY:" + "\r\n a" * (ROOM // 7)))
    yield "parameters", calendar(event("DTSTART;" + "A=B;" * (ROOM // 5) + ":20270101"))


def prepare(sim: Simulation, send: Callable[..., TestResponse]) -> dict[str, str]:
    """Create what a user may have: calendars that leave no day free, 25 tasks of the dearest schedules, some that ran.

    Return what stands for the parameters of paths.
    """
    every_day = [{"date": f"{year}-01-01", "until": f"{year}-12-31"} for year in range(1970, 2100)]
    dense = [{"date": f"{2027 + each // 300}-{1 + each // 25 % 12:02}-{1 + each % 25:02}"} for each in range(900)]
    calendars: dict[str, Json] = {
        "full": {"weekdays": ALL_WEEK.split(",")},
        "almost-full": {"days": every_day},
        "dense": {"weekdays": ["SA", "SU"], "days": dense},
    }
    for name, calendar in calendars.items():
        send("PUT", f"/v1/calendars/{name}", {"title": name, **calendar})
    send("PUT", "/v1/people/ada", {"timezone": "Europe/Paris"})
    send("POST", "/v1/tasks", {**_TASK, "id": "plain"})
    send("POST", "/v1/tasks", {**_TASK, "id": "daily", "schedule": {"rrule": "FREQ=DAILY", **START}})
    sim.advance(timedelta(days=2))
    stored = 0
    for _, schedule in hostile_schedules():
        if stored < 40 and isinstance(schedule, dict):
            stored += send("POST", "/v1/tasks", {**_TASK, "schedule": schedule}).status_code == 201
    assert stored
    sim.advance(timedelta(minutes=5))  # some run every second
    feed = send("POST", "/v1/feeds", {"owner": "ada"}).get_json()
    executions = send("GET", "/v1/tasks/daily/executions").get_json()["executions"]
    return {
        "taskId": "daily",
        "executionId": executions[0]["id"],
        "event": "approved",
        "owner": "ada",
        "messageId": "a.b",
        "chat": "telegram",
        "queue": "gpu",
        "calendarId": "mine",
        "scriptName": "mine",
        "feedId": feed["id"],
        "feedSecret": feed["url"].rpartition("/")[2].removesuffix(".ics"),
        "linkToken": "a.b",
        "answerToken": "a.b",
    }


def fill(send: Callable[..., TestResponse], count: int = MAX_PAGE) -> list[str]:
    """Create so many of the largest tasks for the same user; return their ids.

    They are dear to read in different ways, and dear to write: each has a long description, some run every minute.
    """
    ids: list[str] = []
    stored = dict(accepted_values())
    payloads = [stored[name] for name in ("stored numbers", "stored names", "a stored text")]
    for number in range(count):
        schedule: Json = _date(number) if number % 4 == len(payloads) else {"rrule": "FREQ=DAILY", **START}
        payload = payloads[number % 4] if number % 4 < len(payloads) else {}
        payload = payload if isinstance(payload, dict) else {"a": payload}
        schedule = {"rrule": "FREQ=MINUTELY", **START} if number % 5 == len(payloads) else schedule
        about = {"title": f"{number}{',' * 490}", "description": "," * 10_000}
        task = {**_TASK, "payload": payload, "schedule": schedule, **about}
        answer = send("POST", "/v1/tasks", task)
        assert answer.status_code == 201
        ids.append(answer.get_json()["id"])
    return ids
