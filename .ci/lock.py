"""Write requirements/*.lock: the versions, with hashes, of what `./emulator.sh` installs.

    .ci/lock.py UV      resolve everything anew, with the newest versions

What a user needs, what `pytest` and `check` need, and what `pytest --all` needs are one resolution: each file names
what it adds to those before it, so the versions are the same whichever command came first. What a release needs is a
resolution of its own. pip and uv install from them, on every system and Python that the project supports.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAYERS = {
    "user": ["--extra", "dev", "--group", "build"],
    "dev": ["--all-extras", "--group", "dev"],
    "all": ["--all-extras", "--group", "dev", "--group", "all"],
}
HEADER = "# Made by `./emulator.sh update`. {}\n"


def resolve(uv: str, *options: str) -> str:
    """Return what is to be installed on any system, a package with its hashes at a time."""
    command = [uv, "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--no-header"]
    command += ["--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]
    done = subprocess.run([*command, *options], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603
    return done.stdout


def split(text: str) -> dict[str, str]:
    """Return the lines of each requirement by its first line without the hashes."""
    blocks = re.findall(r"^\S.*(?:\n .*)*", text, re.MULTILINE)
    return {block.partition(" \\")[0].strip(): block for block in blocks}


def write(name: str, text: str, says: str) -> None:
    """Write one file."""
    (ROOT / "requirements" / f"{name}.lock").write_text(HEADER.format(says) + text, "utf-8")


def main() -> None:
    """Resolve, and write the files."""
    uv = sys.argv[1]
    project = "pyproject.toml"
    blocks = split(resolve(uv, project, *LAYERS["all"], "--generate-hashes"))
    before: set[str] = set()
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as pins:
        pins.write("\n".join(blocks))
        pins.flush()
        for name, options in LAYERS.items():
            names = {each.partition(";")[0].strip() for each in split(resolve(uv, project, *options, "-c", pins.name))}
            own = {pin: block for pin, block in blocks.items() if pin.partition(";")[0].strip() in names - before}
            says = f"It adds to {' and '.join(f'{each}.lock' for each in before_names(name))}." if before else ""
            write(name, "".join(f"{block}\n" for block in own.values()), says or "It is what a user needs.")
            before |= names
    write("release", resolve(uv, "--group", "release", "--generate-hashes"), "It is for an environment of its own.")


def before_names(name: str) -> list[str]:
    """Return the layers below one."""
    order = list(LAYERS)
    return order[: order.index(name)]


if __name__ == "__main__":
    main()
