"""The clock of these tests stands still unless they move it, as that of the engine's."""

from tests.engine.conftest import clock_stands

__all__ = ["clock_stands"]
