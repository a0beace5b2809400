"""What an attempt in an embedded app had in its variables is freed when it ends, and needs no search for garbage."""

from __future__ import annotations

from pathlib import Path

from tests import held_frames
from tests.harness import wait_until
from tests.held_frames import DURABLE, PLAIN

from cloudsched import App, Settings
from cloudsched.config.access import Access
from cloudsched.local.embedded_app import embedded


def test_an_attempt_that_has_ended_holds_nothing(tmp_path: Path) -> None:
    """Failed, suspended, cancelled or put off, in the queue of this process, as `serve` has it."""
    app, handlers = App(Settings()), PLAIN | DURABLE
    held_frames.register(app, handlers)
    with embedded(app, tmp_path, settings=Settings(access=Access(open=True))), held_frames.watch():
        for name in handlers:
            app.create(id=name, handler=name)

        def has_ended(name: str) -> bool:
            runs = app.get(name).runs
            return not runs or runs[0].lease is None

        wait_until(lambda: all(map(has_ended, handlers)))
        wait_until(lambda: held_frames.count_made() >= len(handlers), "all have run")
        wait_until(lambda: held_frames.count_held() == 0, "nothing is held", 5)
