"""The examples in the help of each command, by its name. Some verbs have theirs in their table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Iterable

EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "admin backup": ("admin backup --data data backups --keep 14",),
    "admin restore": ("admin restore --data data backups/20270104T120000Z",),
    "admin calendars delete": ("admin calendars delete closed --yes",),
    "admin calendars list": ("admin calendars list --json",),
    "admin calendars set": (
        "admin calendars set fr-holidays --holidays FR --years 2027-2030",
        "admin calendars set closed --day '2027-08-02/2027-08-20=Summer'",
    ),
    "admin calendars show": ("admin calendars show closed --json",),
    "admin keys new": ("admin keys new billing --role admin", "admin keys new gpu --role worker --queue gpu --json"),
    "admin queues list": ("admin queues list --json",),
    "admin queues pause": ("admin queues pause cloudsched-low",),
    "admin queues purge": ("admin queues purge cloudsched-low --yes",),
    "admin queues rate": ("admin queues rate cloudsched-low --per-second 5 --concurrent 10",),
    "admin queues resume": ("admin queues resume cloudsched-low",),
    "admin shards grow": ("admin shards grow 8",),
    "admin shards show": ("admin shards show --json",),
    "admin usage": ("admin usage --month 2027-01 --json",),
    "apply": ("apply --check", "apply --prune --json"),
    "audit": ("audit --by ada --from 2027-01-04T00:00:00Z", "audit --action DELETED --json"),
    "check": ("check --data data --handlers handlers.py", "check --url https://api.example --json"),
    "completion": ("completion bash",),
    "dashboard": ("dashboard --url https://api.example",),
    "demo": ("demo",),
    "dev": ("dev --handlers handlers.py", "dev --store sqlite -- pytest"),
    "doctor": ("doctor --json",),
    "emulator": ("emulator --port 8123",),
    "init": ("init my-service",),
    "mcp": ("mcp --url https://api.example",),
    "next": ("next 'every weekday at 9' --tz Europe/Paris", "next '0 9 * * 1-5' -n 3 --json"),
    "outbox discard": ("outbox discard app.py:outbox 42",),
    "outbox failed": ("outbox failed app.py:outbox",),
    "outbox relay": ("outbox relay app.py:outbox",),
    "outbox retry": ("outbox retry app.py:outbox 42",),
    "people get": ("people get ada --json",),
    "people update": (
        "people update ada --timezone America/New_York",
        'people update ada --set \'email={"address": "ada@example.com", "verified": true}\' --set name=Ada',
    ),
    "run": ('run greet --payload \'{"name": "Ada"}\'',),
    "schema": ("schema report", "schema --typescript > payloads.ts"),
    "search": ("search payroll", "search payroll --owner ada --json"),
    "serve": ("serve --data data --handlers handlers.py",),
    "tasks create": (
        "tasks create 'Weekday report' --handler report --schedule 'every weekday at 9' --tz Europe/Paris",
        'tasks create --handler greet --payload \'{"name": "Ada"}\' --dry-run --json',
    ),
    "tasks pause-all": ("tasks pause-all", "tasks pause-all --owner ada --yes"),
    "tasks restore": ("tasks restore batch-0123456789abcdef0123456789abcdef",),
    "tasks draft": ("tasks draft 'Call Ada tomorrow at 9:00' --tz Europe/Paris",),
    "tasks edit": (
        "tasks edit ID --schedule 'make it 10 instead'",
        "tasks edit ID --set labels='[\"a=b\"]'",
        "tasks edit ID",
    ),
    "tasks get": ("tasks get ID --json", "tasks get ID --json status,nextExecutionTime"),
    "tasks history": ("tasks history ID",),
    "tasks import cloud-scheduler": ("tasks import cloud-scheduler jobs.json --handler call --dry-run",),
    "tasks import crontab": ("tasks import crontab - --handler run --check --json",),
    "tasks list": (
        "tasks list --owner ada --status active",
        "tasks list --search 'tax report'",
        "tasks list --soonest --limit 5 --json id,title",
    ),
    "tasks logs": ("tasks logs ID --follow", "tasks logs ID --status FAILED --from 2027-01-04T00:00:00Z"),
    "tasks send": ('tasks send ID approved --payload \'{"by": "grace"}\'',),
    "tasks tree": ("tasks tree ID --execution 20270104T080000Z",),
    "tasks trigger": ("tasks trigger ID --key nightly-2027-01-04", "tasks trigger ID --dry-run --json"),
    "tasks upcoming": ("tasks upcoming ID -n 5 --tz UTC",),
    "tasks view": ("tasks view ID",),
    "tasks why": ("tasks why ID", "tasks why ID --at 2027-01-04T09:00:00Z"),
    "worker": ("worker --queue gpu --handlers handlers.py --skill cuda",),
}


def format_examples(lines: Iterable[str]) -> str:
    """Return the end of a command's help."""
    return "\n".join(["\b", "Examples:", *(f"  cloudsched {line}" for line in lines)])


def add_examples(command: click.Command, *path: str) -> None:
    """Add examples to the help of a command and of its subcommands."""
    lines = EXAMPLES.get(" ".join(path), ())
    if lines and command.epilog is None:
        command.epilog = format_examples(lines)
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            add_examples(each, *path, name)
