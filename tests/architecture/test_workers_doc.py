"""The test that docs/how-to/workers.md shows runs as it stands there; its walk-through is tried in tests/stories."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "workers.md").read_text("utf-8")


def test_the_test_of_the_page_is_green(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the handlers that stand at the top of the page."""
    handlers, _, test = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    module = ModuleType("handlers")
    monkeypatch.setitem(sys.modules, "handlers", module)
    exec(handlers, module.__dict__)  # noqa: S102 - our own page
    names: dict[str, object] = {}
    exec(test, names)  # noqa: S102 - our own page
    example = names["test_a_film_waits_for_the_box_that_can_render_it"]
    assert callable(example)
    example()
