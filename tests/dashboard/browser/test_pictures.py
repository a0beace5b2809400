"""The pages' pictures show the dashboard as it is: taken again, they look the same."""

from __future__ import annotations

import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING

from tests.browsers import find_chromium
from tests.harness import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

MOST_DIFFERENT = 0.005
"""The part of the values of pixels that may differ: a port and a version stand in each picture."""
COMPARE = """async pictures => {
  const [old, current] = await Promise.all(pictures.map(async data => {
    const image = new Image()
    image.src = "data:image/png;base64," + data
    await image.decode()
    const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d")
    canvas.drawImage(image, 0, 0)
    return canvas.getImageData(0, 0, image.width, image.height)
  }))
  if (old.width !== current.width || old.height !== current.height) return 1
  return old.data.filter((value, index) => Math.abs(value - current.data[index]) > 40).length / old.data.length
}"""


def test_the_pictures_are_those_of_today(chromium: Browser, tmp_path: Path) -> None:
    """`python .ci/site/screenshots.py` takes them again after a change of the dashboard."""
    find_chromium()
    command = [sys.executable, str(ROOT / ".ci" / "site" / "screenshots.py"), str(tmp_path)]
    subprocess.run(command, check=True, cwd=ROOT, timeout=300)  # noqa: S603 - ours
    page = chromium.new_page()
    differing = {
        taken.name: page.evaluate(COMPARE, [b64encode(path.read_bytes()).decode() for path in (shown, taken)])
        for taken in sorted(tmp_path.glob("*.png"))
        for shown in [ROOT / "docs" / "images" / taken.name]
    }
    assert {name: part for name, part in differing.items() if part > MOST_DIFFERENT} == {}
    assert "Everything ran on time, once." in (tmp_path / "demo.svg").read_text("utf-8")
