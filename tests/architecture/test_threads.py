"""No thread of ours ends in silence: what starts a thread or a task beside the caller's is named here, with why it may.

What goes on for as long as a process does is a `ServiceThread`, which repeats its turn whatever that raises, and tells
it. The rest does one thing, and hands what it raises to somebody who waits for it.
"""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "cloudsched"

STARTERS = {
    "Thread",
    "Timer",
    "ThreadPoolExecutor",
    "ProcessPoolExecutor",
    "create_task",
    "ensure_future",
    "to_thread",
    "run_in_executor",
    "start_new_thread",
}
MODULES = {"threading", "asyncio", "futures", "loop", "_loop", "get_running_loop", "concurrent", "_thread"}

ONE_THING = {
    "adapters/delivery/smtp.py": "a timer, which ends a connection that takes too long, and only that",
    "adapters/firestore/shards.py": "queries, whose results are awaited",
    "adapters/language_models.py": "calls of a model, whose results are awaited",
    "adapters/safe_http/session.py": "a timer, which ends a connection that takes too long, and only that",
    "adapters/delivery/switch.py": "one call of the operator's switch, which logs what goes wrong",
    "cli/run.py": "watches the caller, and ends the command when that is gone",
    "cli/worker.py": "a timer, which ends the process that does not stop",
    "emulator/emulator.py": "the thread of the emulator's event loop, which goes on after what a callback raises",
    "emulator/http/grpc.py": "one call, whose end is awaited",
    "emulator/runtime/dispatcher.py": "one attempt or request, whose end is awaited",
    "emulator/storage/write_ahead_log.py": "one write, whose failure is told to each that waits for it",
    "engine/durable/async_calls.py": "one step or call of a handler, whose outcome is kept",
    "engine/durable/event_loop.py": "the loop of async handlers, which is run again after what ends it, and its tasks",
    "engine/durable/step_attempt.py": "one attempt of a step, whose outcome is awaited",
    "engine/tasks/sweeper.py": "repairs, whose results are awaited",
    "local/embedded_app.py": "start and stop, which are awaited",
    "local/wsgi_server.py": "the end of the web server, which is awaited",
    "outbox/relay.py": "the outbox's loop, which logs each exception and goes on",
    "web/api/task_operations.py": "the creations of a batch, whose results are awaited",
    "web/async_app.py": "one method of the app, which is awaited",
    "worker/slot.py": "the call of a handler, and the wish to release it, which are awaited",
}


def starts(file: Path) -> bool:
    """Return whether a module starts a thread or a task by one of the standard library's ways."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if not isinstance(node, ast.Call | ast.ClassDef):
            continue
        for called in [node.func] if isinstance(node, ast.Call) else node.bases:
            if isinstance(called, ast.Name) and called.id in STARTERS - {"create_task"}:
                return True
            if isinstance(called, ast.Attribute) and called.attr in STARTERS:
                owner = called.value.func if isinstance(called.value, ast.Call) else called.value
                name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
                if name in MODULES:
                    return True
    return False


def test_whoever_starts_a_thread_is_known() -> None:
    """A new one is a `ServiceThread`, or is added above with what becomes of its exceptions."""
    found = {file.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*.py") if starts(file)}
    assert found - {"engine/ports/service_threads.py"} == {*ONE_THING}
