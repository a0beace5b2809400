"""The parts of scripts in a container, each made on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.runtime.container import Wiring
from cloudsched.runtime.lazy_property import lazy_property
from cloudsched.scripts.called_scripts import CalledScripts
from cloudsched.scripts.script_handler import ScriptHandler
from cloudsched.scripts.stored_scripts import Scripts

if TYPE_CHECKING:
    from cloudsched.engine.ports.interpreter import Interpreter


class ScriptsWiring(Wiring):
    """Makes what runs and keeps scripts."""

    @lazy_property
    def interpreter(self) -> Interpreter:
        """Runs the scripts of sandboxed tasks."""
        from cloudsched.scripts.quickjs.interpreter import QuickJs  # noqa: PLC0415 - imported only when used

        limits = self.container.settings.sandbox
        return QuickJs(
            memory=limits.memory,
            time=limits.time,
            output=limits.output,
            requires_filter=limits.requires_filter,
        )

    @lazy_property
    def handler(self) -> ScriptHandler:
        """Checks and runs the scripts of tasks."""
        called = CalledScripts(lambda: self.container.store.records, self.container.clock)
        return ScriptHandler(
            self.container.registry, lambda: self.interpreter, self.container.settings.sandbox.calls, called
        )

    @lazy_property
    def scripts(self) -> Scripts:
        """Keeps the scripts of owners."""
        return Scripts(self.container.engine)
