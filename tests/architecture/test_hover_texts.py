"""What an editor shows: pyright's own language server is asked for hover texts, signatures and errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.architecture.test_typed_calls import EXAMPLES, MARKED
from tests.cases import try_each

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = Path(__file__).with_name("hovered.py")
LINES = FILE.read_text("utf-8").splitlines()


class Editor:
    """A language server with the file open."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._last_id = 0
        folder = FILE.parent.as_uri()
        capabilities = {"workspace": {"configuration": True}}
        self.ask(
            "initialize", processId=None, rootUri=folder, capabilities=capabilities,
            workspaceFolders=[{"uri": folder, "name": "tests"}],
        )  # fmt: skip
        self._send({"method": "initialized", "params": {}})
        self._open(FILE)

    def hover(self, text: str) -> str:
        """Return what is shown with the pointer on the last character of this text."""
        found = self.ask("textDocument/hover", **self._place(text, -1))
        return str(found["contents"]["value"]) if found else ""

    def signature(self, text: str) -> str:
        """Return what is shown while a call is typed, behind its opening bracket."""
        found = self.ask("textDocument/signatureHelp", **self._place(text, 0))
        return json.dumps(found["signatures"]) if found else ""

    def find_errors(self, file: Path) -> dict[int, str]:
        """Return the errors of another file, by the numbers of their lines."""
        self._open(file)
        found = self.ask("textDocument/diagnostic", textDocument={"uri": file.as_uri()})["items"]
        return {each["range"]["start"]["line"] + 1: each["message"] for each in found if each["severity"] == 1}

    def ask(self, method: str, **params: Any) -> Any:  # noqa: ANN401 - any JSON
        self._last_id += 1
        self._send({"id": self._last_id, "method": method, "params": params})
        while True:
            message = self._receive()
            if "method" not in message and message.get("id") == self._last_id:
                return message.get("result")
            if "method" in message and "id" in message:
                items = message.get("params", {}).get("items", [])
                settings = [{"pythonPath": sys.executable} for _ in items]
                is_configuration = message["method"] == "workspace/configuration"
                self._send({"id": message["id"], "result": settings if is_configuration else None})

    def close(self) -> None:
        """End it as an editor does: it removes its temporary folder, which it would leave behind if it were killed."""
        self.ask("shutdown")
        self._send({"method": "exit"})
        self._process.wait(60)

    def _open(self, file: Path) -> None:
        document = {"uri": file.as_uri(), "languageId": "python", "version": 1, "text": file.read_text("utf-8")}
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})

    def _place(self, text: str, shift: int) -> dict[str, Any]:
        line = next(number for number, each in enumerate(LINES) if text in each)
        character = LINES[line].index(text) + len(text) + shift
        return {"textDocument": {"uri": FILE.as_uri()}, "position": {"line": line, "character": character}}

    def _send(self, message: dict[str, Any]) -> None:
        content = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(content), content))
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        length = 0
        while line := self._process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        assert length, "the language server has ended"
        message: dict[str, Any] = json.loads(self._process.stdout.read(length))
        return message


@pytest.fixture(name="editor", scope="module")
def open_editor() -> Iterator[Editor]:
    """One server for all questions: it reads the package once."""
    pytest.importorskip("pyright")
    command = [sys.executable, "-m", "pyright.langserver", "--stdio"]
    with subprocess.Popen(  # noqa: S603 - pyright
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            editor = Editor(process)
            yield editor
            editor.close()
        finally:
            process.kill()


@try_each(
    "text, shown",
    [
        ("app.handler", ("retry: RetryPolicy | int | bool | None", "user_queues: Iterable[str]", "time limit of one")),
        ("app.scheduled", ("schedule: Schedule | datetime | str", "timezone: str | None", "Plain words")),
        ("def remind", ("ctx: Context,", "reminder: Reminder", "-> int", "Remind somebody of something.")),
        ("def report", ("async def report(ctx: AsyncContext) -> str", "Report what happened.")),
        ("ctx.step", ("retry: RetryPolicy | int | bool | None", "timeout: timedelta | None", "record its result")),
        ("ctx.wait_for", ("timeout: timedelta | None", "by: Sequence[str]", "Whose events count")),
        ("ctx.sleep", ("Coroutine", "None]")),
        ("remind.create", ("CreateWithPayload[Reminder]", "Create a task of this handler")),
        ("app.create", ("-> Task", "schedule` may be")),
        ("Schedule.every", ("interval: timedelta", "start: datetime | None", "Whole days and weeks")),
        ("asgi", ("threads: int", "under any path")),
        ("Depends", ("dependency: (...) -> Any", "what follows the")),
        ('http://x").create', ("idempotency_key: str | None", "-> TaskView", "safe to repeat")),
        ('AsyncClient("http://x").create', ("Coroutine[Any, Any, TaskView]", "safe to repeat")),
    ],
)  # fmt: skip
def test_a_hover_text_is_whole(text: str, shown: tuple[str, ...], editor: Editor) -> None:
    """Each parameter with its type, the result, and what it means; no type is unknown."""
    found = editor.hover(text)
    assert [each for each in shown if each not in found] == [], found
    assert "Unknown" not in found


@try_each(
    "text, shown",
    [
        ("remind.create(", ("payload: Reminder", "schedule:", "owner: str")),
        ("remind.run_now(", ("payload: Reminder", "owner: str")),
        ("ctx.step(", ("name: str", "timeout: timedelta | None")),
        ("app.handler(", ("access: Requesters | str",)),
    ],
)
def test_a_signature_is_shown_while_a_call_is_typed(text: str, shown: tuple[str, ...], editor: Editor) -> None:
    """Of typed handles, too, with the payload's model and the fields of a task."""
    found = editor.signature(text)
    assert [each for each in shown if each not in found] == [], found
    assert "Unknown" not in found


def test_pyright_rejects_exactly_the_marked_lines(editor: Editor) -> None:
    """Of the examples of typed calls, each mistake is found, and nothing else is."""
    errors = editor.find_errors(EXAMPLES)
    assert errors.keys() == MARKED, errors
