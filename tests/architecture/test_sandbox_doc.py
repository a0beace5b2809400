"""The example of docs/how-to/sandbox.md runs as it stands there, and its table of limits is that of the settings."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner
from werkzeug.wrappers import Request

from cloudsched.cli.main import cloudsched
from cloudsched.config.features import Sandbox
from cloudsched.config.settings import Settings
from cloudsched.errors import Misconfigured
from cloudsched.local.wsgi_server import WebServer
from cloudsched.testing import Simulation
from cloudsched.web.functions import serve_api

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "how-to" / "sandbox.md").read_text("utf-8")
STORED = (DOCS / "how-to" / "stored-scripts.md").read_text("utf-8")
REFERENCE = (DOCS / "reference" / "scripts.md").read_text("utf-8")


def test_the_example_does_as_it_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A newcomer who copies the three blocks sees a green test."""
    _, test = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    _handlers(monkeypatch, tmp_path)
    names: dict[str, object] = {}
    exec(test, names)  # noqa: S102 - our own page
    example = names["test_the_user_is_asked_after_three_days"]
    assert callable(example)
    example()


def test_the_command_line_does_as_it_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A newcomer who copies it makes the task, where there is no sign-in, as on the local stack."""
    words = re.findall(r"\ncloudsched tasks (create [^`]*)", PAGE)[0]
    app = _handlers(monkeypatch, tmp_path).app
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1,localhost")  # a machine behind a proxy does not ask it for itself
    with Simulation(app), WebServer(Request.application(lambda request: serve_api(app, request))) as server:
        server.serve()
        url = f"http://{server.address}"
        made = CliRunner().invoke(cloudsched, ["tasks", "--url", url, *shlex.split(words.replace("\\\n", ""))])
        assert made.exit_code == 0, made.output
        (task,) = app.tasks().items
    assert task.script
    assert task.script.tools == ("find-order", "tell")


def test_the_nested_scripts_do_as_they_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A newcomer who copies the two stored scripts and the three commands gets each greeting from a nested task."""
    for name, source in zip(
        ("nested-task.js", "orders.js"), re.findall(r"```js\n(.*?)```", STORED, re.DOTALL), strict=True
    ):
        (tmp_path / name).write_text(source, "utf-8")
    (commands,) = re.findall(r"```sh\n(.*?)```", STORED, re.DOTALL)
    app = _handlers(monkeypatch, tmp_path).app
    monkeypatch.chdir(tmp_path)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1,localhost")
    with Simulation(app) as sim, WebServer(Request.application(lambda request: serve_api(app, request))) as server:
        server.serve()
        for command in commands.splitlines():
            group, *words = shlex.split(command)[1:]
            said = CliRunner().invoke(cloudsched, [group, "--url", f"http://{server.address}", *words])
            assert said.exit_code == 0, said.output
        (task,) = app.tasks().items
        sim.run_until_idle()
        (execution,) = sim.executions(task.id)
    assert execution.content == [f"Order {order} of ada is shipped" for order in (7, 8)]
    assert [each.name for each in execution.steps if each.kind == "CALL"] == ["scripts.nested-task"] * 2


def test_the_limits_are_those_of_the_settings() -> None:
    """Each variable is in both tables, with its default."""
    table = (DOCS / "reference" / "configuration.md").read_text("utf-8")
    for name, value in Sandbox().to_variables().items():
        assert re.search(rf"`{name}` \| .* \| `{value}` \|", table), name
        assert re.search(rf"\| {value} ?[A-Za-z]* \| `{name}` \|", REFERENCE), name


def test_what_is_set_is_read_and_written_again() -> None:
    """From the environment and back, as the other settings; what makes no sense is refused by its name."""
    env = dict(zip(Sandbox().to_variables(), ("32", "0.5", "8", "7", "best-effort"), strict=True))
    settings = Settings.from_environment(env)
    assert settings.sandbox.memory == 32 * 2**20
    assert not settings.sandbox.requires_filter
    assert Settings.from_environment(settings.to_environment()) == settings
    for variable in Sandbox().to_variables():
        for wrong in ("0", "-1", "x", "1e9", "nan", "٣", "9" * 30):
            with pytest.raises(Misconfigured, match=variable):
                Settings.from_environment({variable: wrong})


def _handlers(monkeypatch: pytest.MonkeyPatch, folder: Path) -> ModuleType:
    """Return the page's handlers, to be imported as it does, and go into a folder that has its script."""
    code, _ = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    script = re.findall(r"```js\n(.*?)```", PAGE, re.DOTALL)[0]
    (folder / "follow-up.js").write_text(script, "utf-8")
    monkeypatch.chdir(folder)
    module = ModuleType("handlers")
    monkeypatch.setitem(sys.modules, "handlers", module)
    exec(code, module.__dict__)  # noqa: S102 - our own page
    return module
