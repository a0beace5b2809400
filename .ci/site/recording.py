"""Record `cloudsched demo` as a picture that moves: ``python .ci/site/recording.py`` writes docs/images/demo.svg.

The demo runs in a terminal of its own. What stands there every `STEP` seconds is a frame, and CSS shows the frames in
turn, so the picture needs no script.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from html import escape
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

FILE: Final = Path(__file__).parents[2] / "docs" / "images" / "demo.svg"
PROMPT: Final = "\x1b[2m$\x1b[0m cloudsched demo\n"
STEP: Final = 0.25
COLUMNS, ROWS = 84, 30
STAYS: Final = 8.0
"""How many seconds the last frame is shown."""
_REDRAW: Final = "\r\x1b[2K"
_OTHERS: Final = re.compile(r"\x1b\[(?![\d;]*m)[?\d;]*[A-Za-z]")
"""Control sequences that are no colours."""
_WIDTH, _HEIGHT = 8.4, 18


def run_demo() -> list[str]:
    """Run the demo and return the frames, each as the text of the terminal with its colours."""
    own, other = pty.openpty()
    command = [sys.executable, "-m", "cloudsched", "demo"]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "PATH": "/nonexistent"}
    process = subprocess.Popen(command, stdin=other, stdout=other, stderr=other, env=environment)  # noqa: S603 - ours
    os.close(other)
    frames, text, next_at = [PROMPT], "", time.monotonic() + STEP
    while True:
        try:
            data = os.read(own, 65536)
        except OSError:  # the demo has ended
            break
        if not data:
            break
        text += data.decode(errors="replace")
        if time.monotonic() >= next_at:
            frames.append(PROMPT + _show(text))
            next_at = time.monotonic() + STEP
    if process.wait():
        raise SystemExit(f"The demo failed:\n{text[-2000:]}")
    return [*frames, PROMPT + _show(text)]


def _show(written: str) -> str:
    """Return what a terminal shows of what was written to it: of a line that is drawn again, the last."""
    lines = [line.rpartition(_REDRAW)[2] for line in written.replace("\r\n", "\n").split("\n")]
    return _OTHERS.sub("", "\n".join(lines))


def draw(frames: list[str]) -> str:
    """Return the picture of these frames, the last lines of each."""
    seconds = len(frames) * STEP + STAYS
    width, height = round(COLUMNS * _WIDTH + 24), (ROWS + 1) * _HEIGHT + 12
    styles, drawn = [], []
    for number, frame in enumerate(frames):
        begin, is_last = 100 * number * STEP / seconds, number == len(frames) - 1
        end = 100.0 if is_last else 100 * (number + 1) * STEP / seconds
        hidden = f"0%{{opacity:0}}{begin:.2f}%{{opacity:1}}" if number else "0%{opacity:1}"
        styles.append(
            f"@keyframes f{number}{{{hidden}{end:.2f}%{{opacity:{int(is_last)}}}100%{{opacity:{int(is_last)}}}}}"
        )
        styles.append(f".f{number}{{animation:f{number} {seconds:.1f}s step-end infinite}}")
        drawn.append(f'<g class="f{number}">{_draw_lines(frame.rstrip().splitlines()[-ROWS:])}</g>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
        "<title>cloudsched demo: more than a year of tasks runs in seconds</title>"
        "<style>text{font:14px ui-monospace,Menlo,Consolas,monospace;fill:#e6edf3;white-space:pre}g{opacity:0}"
        f"{''.join(styles)}</style>"
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>{"".join(drawn)}</svg>\n'
    )


def _draw_lines(lines: list[str]) -> str:
    console, drawn = Console(width=COLUMNS, force_terminal=True, color_system="truecolor"), []
    for row, line in enumerate(lines, 1):
        column, parts = 0, []
        for segment in Text.from_ansi(line).render(console):
            style, shown = segment.style, segment.text.rstrip("\n")
            if shown.strip():
                look = ' font-weight="bold"' if style and style.bold else ""
                look += ' opacity="0.6"' if style and style.dim else ""
                if style and style.color and not style.color.is_default:
                    look += f' style="fill:{style.color.get_truecolor(MONOKAI).hex}"'
                parts.append(f'<tspan x="{12 + column * _WIDTH:.1f}"{look}>{escape(shown)}</tspan>')
            column += len(shown)
        if parts:
            drawn.append(f'<text y="{row * _HEIGHT + 6}">{"".join(parts)}</text>')
    return "".join(drawn)


if __name__ == "__main__":
    FILE.write_text(draw(run_demo()), "utf-8")
    print(f"{FILE} has {FILE.stat().st_size:,} bytes")
