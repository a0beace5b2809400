"""What the commands of the pages find: a local stack with tasks, files beside them, and what stands for both."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from tests.doc_blocks import Block
from tests.docs.terminal import Terminal, open_terminal
from tests.harness import free_port, wait_until
from tests.run.isolation import keep_process

from cloudsched import Schedule, Settings
from cloudsched.config.settings import AssistantSettings, ModelSettings
from cloudsched.local.stack import Stack, run_stack
from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import Role

HANDLERS = Path(__file__).with_name("handlers.py")
CRONTAB = "MAILTO=ops@example.com\n0 3 * * * /usr/local/bin/backup --full\n*/5 9-17 * * 1-5 /usr/local/bin/report\n"
SYSTEM_CRONTAB = "17 2 * * * root /usr/local/bin/backup\n30 6 1 * * www /usr/local/bin/report --month\n"
JOBS = (
    '[{"name": "projects/p/locations/europe-west1/jobs/report-daily", "schedule": "0 9 * * *",'
    ' "timeZone": "Europe/Paris", "state": "ENABLED",'
    ' "httpTarget": {"uri": "https://example.com/report", "httpMethod": "POST", "body": "e30="}}]'
)
CLOSED = (
    "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//x//EN\r\nBEGIN:VEVENT\r\nUID:a@x\r\nDTSTAMP:20270101T000000Z\r\n"
    "DTSTART;VALUE=DATE:20270802\r\nDTEND;VALUE=DATE:20270821\r\nSUMMARY:Summer\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
)


@dataclass(frozen=True)
class World:
    """A stack, a terminal, and what placeholders stand for."""

    stack: Stack
    terminal: Terminal
    key: str
    waiting: Iterator[tuple[str, str]]
    """Tasks that wait for an event, each with its execution, as many as are asked for."""
    ended: Iterator[tuple[str, str]]
    """Tasks whose execution has ended, after some steps."""
    port: str
    """The port of a page's own service."""

    def fill(self, block: Block, text: str) -> str:
        """Return commands with the addresses, keys and ids of this stack instead of the page's."""
        text = re.sub(r"(?:http://)?(?:localhost|127\.0\.0\.1):8080", self.stack.url, text)
        text = re.sub(r"(?:http://)?(?:localhost|127\.0\.0\.1):8123", f"http://{self.stack.emulator.address}", text)
        text = re.sub(r"CLOUDSCHED_URL=https://…", f"CLOUDSCHED_URL={self.stack.url}", text)
        text = re.sub(r"\bcsk_[\w-]*…", self.key, text)
        text = text.replace("/etc/crontab", "etc-crontab")
        text = text.replace("localhost:8000", f"localhost:{self.port}").replace("--port 8000", f"--port {self.port}")
        if re.search(r"\bID\b", text) and "gcloud" not in text:
            text = "\n".join(self._fill_ids(line) for line in text.splitlines())
        assert "cloudsched" not in re.findall(r"(\w+) \S*…", text), f"{block}: a placeholder that nothing fills"
        return text

    def _fill_ids(self, line: str) -> str:
        """Return a command about a task and an execution that exist."""
        task, execution = next(self.ended if " retry " in line else self.waiting)
        line = re.sub(r"\bEXECUTION\b", execution, line)
        return re.sub(r"\bID\b", task, re.sub(r"--execution ID", f"--execution {execution}", line))


@contextmanager
def open_world(folder: Path) -> Iterator[World]:
    """Start the stack; the folder has handlers and what the commands read."""
    for name, text in {
        "handlers.py": HANDLERS.read_text("utf-8"), "etc-crontab": SYSTEM_CRONTAB, "closed.ics": CLOSED,
        "functions/handlers.py": HANDLERS.read_text("utf-8"), "infra/config.example.sh": 'PROJECT=""\n',
    }.items():  # fmt: skip
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    spec = spec_from_file_location("handlers_of_pages", HANDLERS)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    key, _ = create_key("docs", Role.ADMIN)
    base = Settings(
        default_lead=timedelta(0),
        assistant=AssistantSettings(is_on=True),
        model=ModelSettings(name="openai:none", url="http://127.0.0.1:1/v1"),
    )
    with keep_process(), run_stack(module.app, base=base, store="sqlite") as stack:
        _create_tasks(stack)
        variables = {
            **stack.to_environment(), "CLOUDSCHED_URL": stack.url, "URL": stack.url, "API": stack.url, "KEY": key,
            "TOKEN": "",
        }  # fmt: skip
        with open_terminal(folder, variables, {"crontab": CRONTAB, "gcloud": JOBS, "uuidgen": "1-2-3"}) as terminal:
            yield World(
                stack,
                terminal,
                key,
                _make_tasks(stack, "order", "SUSPENDED"),
                _make_tasks(stack, "steps", "FAILED"),
                str(free_port()),
            )


def _create_tasks(stack: Stack) -> None:
    app = stack.app
    task = app.create(owner="ada", title="Report", handler="report", schedule=Schedule.every(timedelta(hours=1)))
    app.trigger(task.id)
    wait_until(lambda: any(each.status == "SUCCEEDED" for each in app.executions(task.id).items), "the report ran")


def _make_tasks(stack: Stack, handler: str, status: str) -> Iterator[tuple[str, str]]:
    while True:
        task = stack.app.create(owner="ada", title="Order", handler=handler, schedule="every day at 8:00")
        stack.app.trigger(task.id)
        wait_until(partial(_is, stack, task.id, status), f"the task is {status}")
        (execution,) = stack.app.executions(task.id).items
        yield task.id, execution.id


def _is(stack: Stack, task_id: str, status: str) -> bool:
    return any(each.status == status for each in stack.app.executions(task_id).items)
