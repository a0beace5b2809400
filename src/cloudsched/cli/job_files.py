"""Read the jobs of other schedulers, to create tasks from them: crontabs, and gcloud's list of Cloud Scheduler jobs.

Crontabs are read by crontab(5) of Debian and cronie: environment, zones, the user column, ``%`` in commands. Of Cloud
Scheduler, ``gcloud scheduler jobs list --format=json`` is read.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from cloudsched.cli.options import drop_none
from cloudsched.domain.documents.policy import RetryPolicy
from cloudsched.domain.recurrence.cron import is_cron
from cloudsched.domain.recurrence.time_zones import load_zone
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.engine.handlers.registry import Declaration, Registry
from cloudsched.errors import InvalidInput, InvalidSchedule
from cloudsched.language.schedule_text import read_schedule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.app import App


@dataclass(frozen=True, slots=True)
class Job:
    """One job that can become a task."""

    id: str
    """The id of its task: the same whenever the same file is read."""
    name: str
    """The text that ``--map`` is compared with: a job's name, or a command."""
    place: str
    """The place in the file, for people."""
    title: str
    schedule: Schedule | str
    timezone: str | None
    """The zone of a schedule in words."""
    payload: dict[str, Any]
    """The whole job, for a handler that takes any job."""
    body: dict[str, Any] | None
    """The body, for a handler of this job alone. None if the job has no payload."""
    left_out: tuple[str, ...] = ()
    """The parts of a job that a task cannot have, for people."""
    more: dict[str, Any] = field(default_factory=dict)
    """Other fields of the task, by their Python names."""
    is_paused: bool = False


class Refusal(Exception):
    """A job cannot become a task."""


@dataclass(frozen=True, slots=True)
class ReadFile:
    """The content of a file."""

    jobs: list[Job]
    refusals: list[str]
    """Each job that cannot become a task: where it stands, why, and what to do."""
    notes: list[str]
    """Notes to read before the import."""


_VARIABLE = re.compile(r"""(?:"([^"]*)"|'([^']*)'|([A-Za-z_][A-Za-z0-9_]*))\s*=\s*(.*)\Z""", re.DOTALL)
_PERCENT = re.compile(r"(\\?)%")
_LEFT_OUT = {
    "MAILTO": "MAILTO is ignored: a handler sends its own mail, and on_failure tells you of failures.",
    "MAILFROM": "MAILFROM is ignored: a handler sends its own mail.",
    "RANDOM_DELAY": "RANDOM_DELAY is ignored: give the tasks a jitter instead.",
}
_TITLE_LENGTH = 200


@dataclass(slots=True)
class _JobFileReader:
    """The state from line to line."""

    zone: str
    """The zone of the times, or an empty text if nothing names it."""
    has_user: bool
    prefix: str
    default_zone: str
    environment: dict[str, str] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)
    notes: dict[str, None] = field(default_factory=dict)


def read_crontab(content: bytes, *, timezone: str | None, has_user: bool, prefix: str) -> ReadFile:
    """Return the jobs of a crontab.

    Times that follow no ``CRON_TZ`` are in the zone, or in UTC. A column before the command names the user in
    ``/etc/crontab``.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refusal(f"it is not UTF-8: {error.reason} at byte {error.start}") from None

    reader = _JobFileReader(timezone or "", has_user, prefix, timezone or "")
    jobs: list[Job] = []
    refusals: list[str] = []
    for number, line in enumerate(map(str.strip, text.split("\n")), 1):
        if not line or line.startswith("#"):
            continue
        try:
            job = _read_line(reader, line, f"line {number}")
        except Refusal as refusal:
            refusals.append(f"line {number}: {refusal}")
        else:
            jobs += filter(None, [job])

    if timezone is None and "CRON_TZ" not in text and jobs:
        reader.notes["The file names no zone, so its times are UTC; --timezone names another one."] = None
    return ReadFile(jobs, refusals, list(reader.notes))


def _read_line(reader: _JobFileReader, line: str, place: str) -> Job | None:
    if variable := _VARIABLE.match(line):
        double, single, plain, value = variable.groups()
        _set_variable(reader, double or single or plain or "", value)
        return None

    timing, rest = _split_timing(line)
    user = None
    if reader.has_user:
        user, rest = [*re.split(r"[ \t]+", rest, maxsplit=1), ""][:2]
    if not rest:
        missing = "a user and a command" if reader.has_user else "a command"
        raise Refusal(f"{line[:60]!r} is no job: it needs five fields or an @name, and {missing}")

    if "TZ" in reader.environment and not reader.zone:
        zone = reader.environment["TZ"][:60]
        hint = "write CRON_TZ for the zone of its times, or give --timezone"
        raise Refusal(f"TZ={zone} above it is the zone of its times only for some crons: {hint}")

    schedule = _read_cron(timing, reader.zone or "UTC")
    command, stdin = _split_input(rest)
    environment = dict(reader.environment) or None
    whole = drop_none(command=command, stdin=stdin, user=user or None, environment=environment)
    title = command[:_TITLE_LENGTH] or "?"
    task_id = _make_id(reader, user, rest)
    return Job(task_id, command, place, title, schedule, None, whole, whole)


def _set_variable(reader: _JobFileReader, name: str, value: str) -> None:
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]

    if name == "CRON_TZ":
        reader.zone = value.lstrip(":") or reader.default_zone
    elif note := _LEFT_OUT.get(name):
        reader.notes[note] = None
    else:
        reader.environment[name] = value


def _split_timing(line: str) -> tuple[str, str]:
    """Split a line into its schedule and its command."""
    count = 1 if line.startswith("@") else 5
    fields = re.match(rf"(?:[^ \t]+[ \t]+){{{count - 1}}}[^ \t]+", line)
    if fields is None:
        return line, ""
    return " ".join(fields.group().split()), line[fields.end() :].lstrip(" \t")


def _read_cron(timing: str, zone: str) -> Schedule:
    if timing.lower() == "@reboot":
        raise Refusal("@reboot is no time: call the function where your service starts")
    if "~" in timing:
        raise Refusal(f"{timing!r} has a random time (~): write a time, and give the task a jitter")
    if not is_cron(timing):
        raise Refusal(f"{timing[:60]!r} is no time that cron knows")
    try:
        return Schedule.parse(timing, timezone=zone)
    except InvalidSchedule as error:
        raise Refusal(str(error)) from None


def _split_input(text: str) -> tuple[str, str | None]:
    r"""Return the command and its standard input, which begins at the first ``%`` that is not written ``\%``."""
    parts = [""]
    last = 0
    for found in _PERCENT.finditer(text):
        parts[-1] += text[last : found.start()]
        last = found.end()
        if found.group(1):
            parts[-1] += "%"
        else:
            parts.append("")

    parts[-1] += text[last:]
    command, *lines = parts
    return command.strip(), "\n".join([*lines, ""]) if lines else None


def _make_id(reader: _JobFileReader, user: str | None, command: str) -> str:
    """Return an id that does not depend on the job's time or on other lines."""
    digest = hashlib.sha256(json.dumps([user, command]).encode()).hexdigest()[:10]
    program = re.sub(r"[^A-Za-z0-9]+", "-", command.split(maxsplit=1)[0].rpartition("/")[2])[:40].strip("-")
    name = "-".join(part for part in (reader.prefix, program, digest) if part)
    reader.seen[name] += 1
    return name if reader.seen[name] == 1 else f"{name}-{reader.seen[name]}"


_SECRET_HEADERS = {"authorization", "proxy-authorization", "cookie", "x-api-key"}
_OWN_HEADERS = {"user-agent"}
"""The headers that Cloud Scheduler itself sets."""
_Seconds = Annotated[str, Field(pattern=r"^[0-9]{1,9}(\.[0-9]{1,9})?s$")]


class _Printed(BaseModel):
    """A job as gcloud prints it, without the fields that are of no interest."""

    model_config: ClassVar[ConfigDict] = ConfigDict(alias_generator=to_camel, strict=True)


class _HttpTarget(_Printed):
    uri: str
    http_method: str = "POST"
    headers: dict[str, str] = {}
    body: str = ""


class _PubsubTarget(_Printed):
    topic_name: str
    attributes: dict[str, str] = {}
    data: str = ""


class _AppEngineTarget(_Printed):
    relative_uri: str = "/"
    http_method: str = "POST"
    headers: dict[str, str] = {}
    body: str = ""
    app_engine_routing: dict[str, str] = {}


class _RetryConfig(_Printed):
    retry_count: int = 0
    min_backoff_duration: _Seconds = "5s"
    max_backoff_duration: _Seconds = "3600s"


class _SchedulerJob(_Printed):
    name: Annotated[str, Field(pattern=r"^projects/[^/]+/locations/[^/]+/jobs/[A-Za-z0-9_-]+$")]
    schedule: str
    time_zone: str = "Etc/UTC"
    description: str = ""
    state: str = "ENABLED"
    http_target: _HttpTarget | None = None
    pubsub_target: _PubsubTarget | None = None
    app_engine_http_target: _AppEngineTarget | None = None
    retry_config: _RetryConfig = _RetryConfig()


def read_cloud_scheduler(content: bytes, *, prefix: str) -> ReadFile:
    """Return the jobs of a list."""
    expected = "expected is what `gcloud scheduler jobs list --format=json` prints"
    try:
        listed = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise Refusal(f"it is no JSON ({error}); {expected}") from None
    if not isinstance(listed, list):
        raise Refusal(f"it is no list of jobs; {expected}")

    jobs: dict[str, Job] = {}
    refusals: list[str] = []
    for number, each in enumerate(listed, 1):
        place = f"job {number}"
        try:
            printed = _SchedulerJob.model_validate(each)
            place = f"job {printed.name.rpartition('/')[2]}"
            job = _read_job(printed, place, prefix)
            if job.id in jobs:
                hint = "give each location's list its own --name"
                refusals.append(f"{place}: there are two jobs of this name: {hint}")
            jobs.setdefault(job.id, job)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            refusals.append(f"{place}: {'.'.join(map(str, first['loc']))}: {first['msg']}")
        except (InvalidInput, Refusal) as refusal:
            refusals.append(f"{place}: {refusal}")

    return ReadFile([*jobs.values()], refusals, [])


def _read_job(printed: _SchedulerJob, place: str, prefix: str) -> Job:
    name = printed.name.rpartition("/")[2]
    known = [printed.http_target, printed.pubsub_target, printed.app_engine_http_target]
    targets = [each for each in known if each]
    if len(targets) != 1:
        raise Refusal(f"it has {len(targets)} targets; one of HTTP, Pub/Sub and App Engine is expected")

    (target,) = targets
    content = _decode(target.data if isinstance(target, _PubsubTarget) else target.body)
    whole, left_out = _describe_target(target, content)
    body = {} if content is None else content

    task_id = f"{prefix}{name}"
    if len(task_id) > 128:  # noqa: PLR2004 - the longest id of a task
        raise Refusal("its name is too long for a task's id, which has at most 128 characters")

    load_zone(printed.time_zone)
    schedule: Schedule | str = printed.schedule
    zone: str | None = printed.time_zone
    if is_cron(printed.schedule):
        schedule = Schedule.parse(printed.schedule, timezone=printed.time_zone)
        zone = None

    return Job(
        id=task_id,
        name=name,
        place=place,
        title=(printed.description.strip() or name)[:500],
        schedule=schedule,
        timezone=zone,
        payload=whole,
        body=body if isinstance(body, dict) else None,
        left_out=left_out,
        more=_read_retry(printed.retry_config),
        is_paused=printed.state in {"PAUSED", "DISABLED"},
    )


def _describe_target(
    target: _HttpTarget | _PubsubTarget | _AppEngineTarget,
    content: Any,  # noqa: ANN401 - any JSON
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the target as JSON without its secrets, and the names of what was removed."""
    if isinstance(target, _PubsubTarget):
        return drop_none(topic=target.topic_name, attributes=target.attributes or None, body=content), ()

    left_out = tuple(f"the header {name}" for name in target.headers if name.lower() in _SECRET_HEADERS)
    dropped = _SECRET_HEADERS | _OWN_HEADERS
    kept = {name: value for name, value in target.headers.items() if name.lower() not in dropped}
    if isinstance(target, _HttpTarget):
        address = {"url": target.uri}
    else:
        address = drop_none(path=target.relative_uri, service=target.app_engine_routing.get("service"))
    return address | drop_none(method=target.http_method, headers=kept or None, body=content), left_out


def _decode(encoded: str) -> Any:  # noqa: ANN401 - any JSON
    """Return a body as JSON, as text, or else in its encoded form. None if there is none."""
    if not encoded:
        return None
    try:
        content = base64.b64decode(encoded, validate=True)
    except ValueError:
        raise Refusal("its body is not base64, as gcloud writes it") from None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return {"base64": encoded}
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _read_retry(config: _RetryConfig) -> dict[str, Any]:
    """Return the retry policy of a job that has one. A job without retries leaves it to the handler."""
    if not config.retry_count:
        return {}
    return {
        "retry": RetryPolicy(
            max_retries=config.retry_count,
            base=timedelta(seconds=float(config.min_backoff_duration[:-1])),
            factor=2.0,
            cap=timedelta(seconds=float(config.max_backoff_duration[:-1])),
        )
    }


@dataclass(frozen=True, slots=True)
class HandlerChoice:
    """The handlers that the options name, beside the app's handlers.

    The first rule that fits decides: a pattern of ``--map``, a handler with the job's own name, or ``--handler``. One
    of the first two is for this job, and gets its body. The last is for any job, and gets all of it.
    """

    registry: Registry
    patterns: Sequence[tuple[str, str]]
    default: str | None
    owner: str

    def declare(self, job: Job) -> tuple[Declaration, list[str]]:
        """Return the task for a job, and the parts of the job that it lacks. Raises Refusal."""
        own = next((name for pattern, name in self.patterns if fnmatchcase(job.name, pattern)), None)
        own = own or (job.name if job.name in self.registry else None)
        handler = own or self.default
        if handler is None:
            known = ", ".join(sorted(each.name for each in self.registry)) or "none"
            target = next((f" ({job.payload[key]})" for key in ("url", "topic", "path") if key in job.payload), "")
            raise Refusal(
                f"no handler is named for {job.name[:60]!r}{target}: give --map 'PATTERN=HANDLER' "
                f"or --handler HANDLER. There are: {known}"
            )

        payload, left_out = self._payload_for(job, handler, is_own=own is not None)
        declaration = Declaration(
            id=job.id,
            handler=handler,
            schedule=job.schedule,
            timezone=job.timezone,
            owner=self.owner,
            payload=payload,
            more={"title": job.title, **job.more},
            is_paused=job.is_paused,
        )
        return declaration, left_out

    def _payload_for(self, job: Job, name: str, *, is_own: bool) -> tuple[dict[str, Any], list[str]]:
        payload = job.body if is_own else job.payload
        handler = self.registry.find(name)
        left_out = [*job.left_out]
        if handler is not None and handler.payload is None:
            if payload:
                left_out.append(f"its payload, as {name} takes none")
            return {}, left_out

        if payload is None:
            raise Refusal(
                f"its body is no JSON object, so it cannot be the payload of {name!r}; --handler gets it as text"
            )

        if is_own and "attributes" in job.payload and "topic" in job.payload:
            left_out.append("its attributes")
        if handler is not None and "environment" in payload and not handler.accepts_field("environment"):
            left_out.append(f"its environment, as the payload of {name} has no such field")
            payload = {key: value for key, value in payload.items() if key != "environment"}
        return payload, left_out


def require_only_time(app: App, job: Job) -> None:
    """Check that words name a time and nothing else. Plain words may also name a task, which would be a misreading."""
    if isinstance(job.schedule, str):
        now = app.container.clock.now()
        zone = job.timezone or "UTC"
        at = app.container.settings.default_time
        calendar = app.container.settings.default_calendar
        read = read_schedule(job.schedule, now=now, timezone=zone, default_time=at, default_calendar=calendar)
        if read.title:
            raise Refusal(f"its schedule {job.schedule[:60]!r} has words that are no time: {read.title[:60]!r}")
