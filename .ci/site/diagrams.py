"""The pictures of the Mermaid diagrams in docs/, which ``python .ci/site/draw_diagrams.py`` draws.

The site puts each picture into its page, so that it needs no script, and its colours are those of the page.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "images" / "diagrams"
BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)

_WIDTH = re.compile(r'style="max-width: ([\d.]+)px;"')
_LEAST_SCALE = 0.7


def name_picture(source: str) -> str:
    """Return the file name of a diagram's picture: a digest of its text, so a changed diagram has none."""
    return hashlib.sha256(source.encode()).hexdigest()[:16] + ".svg"


def put_pictures(markdown: str) -> str:
    """Return a page with a picture in place of each diagram's text."""
    return BLOCK.sub(_put_picture, markdown)


def _put_picture(block: re.Match[str]) -> str:
    path = FOLDER / name_picture(block[1])
    if not path.is_file():
        raise SystemExit(
            f"A diagram has no picture: python .ci/site/draw_diagrams.py draws it. It begins:\n{block[1][:200]}"
        )
    picture = _WIDTH.sub(_keep_readable, path.read_text("utf-8").strip(), count=1)
    return f'<div class="diagram" tabindex="0" role="img" aria-label="Diagram">{picture}</div>'


def _keep_readable(width: re.Match[str]) -> str:
    """Return the width of a picture: as the page allows, but not below the one at which its text can still be read."""
    natural = float(width[1])
    return f'style="max-width: {natural:.0f}px; min-width: {natural * _LEAST_SCALE:.0f}px"'
