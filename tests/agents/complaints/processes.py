"""Complaints about processes that die, with real ones."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.agents.complaints.world import World, complaint


@complaint(
    "A run counts as “ok” as soon as it begins. If its process is killed then, nobody learns of it",
    "openclaw/openclaw#112647",
    "After `kill -9`, the next process starts the run again at once, and what came due in between",
)
def killed_while_it_runs(world: World) -> None:
    from tests.agents.conftest import Caller  # noqa: PLC0415 - the page is written without a server
    from tests.harness import wait_until  # noqa: PLC0415 - the same
    from tests.stories.test_serve import HANDLERS, serve, statuses  # noqa: PLC0415 - the same

    del world  # which simulates: here, the clock, the file and the processes are real
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "handlers.py").write_text(HANDLERS)
        with serve(folder) as (service, url):
            agent = Caller(url, None)
            running = agent("create_task", title="Runs", handler="note", when="now", payload={"until": "go"})
            coming = agent("create_task", title="Comes", handler="note", when="in 2 seconds", payload={})
            assert running["scheduled"]
            assert coming["scheduled"]
            wait_until(lambda: statuses(url, running["id"]) == ["RUNNING"], "it runs")
            service.kill()

        (folder / "go").touch()
        with serve(folder) as (_, url):
            for each in (running, coming):
                wait_until(lambda each=each: statuses(url, each["id"]) == ["SUCCEEDED"], "it has run")  # type: ignore[misc]
        assert sorted((folder / "ran.txt").read_text().split()) == sorted([running["id"], coming["id"]])
