"""Read the blocks of Terraform files as `terraform fmt` writes them: one argument a line, a block's end on its own."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BLOCK = re.compile(r'^\s*([a-z_]+)((?: "[^"]*")*) \{(\})?$')
_ARGUMENT = re.compile(r"^\s*([a-z_0-9]+)\s*= ?(.*)$")
_ONE_LINE = re.compile(r'^\s*([a-z_]+)((?: "[^"]*")*) \{ (.*) \}$')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


@dataclass
class Block:
    """A block with its labels, arguments (as they are written) and blocks within."""

    kind: str
    labels: tuple[str, ...] = ()
    arguments: dict[str, str] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)


def read_blocks(file: Path) -> list[Block]:
    """Return the blocks of a file."""
    lines = iter(file.read_text(encoding="utf-8").splitlines())
    top = Block("")
    _read(lines, top)
    return top.blocks


def _read(lines: Iterator[str], block: Block) -> None:
    """Read lines into a block, up to its end."""
    for line in lines:
        text = line.partition(" #")[0].rstrip() if '"' not in line else line.rstrip()
        if not text or text.lstrip().startswith("#"):
            continue
        if text.strip() == "}":
            return
        if found := _ONE_LINE.match(text):
            inner = Block(found[1], _labels(found[2]), dict([found[3].split(" = ", 1)]))
            block.blocks.append(inner)
        elif found := _BLOCK.match(text):
            inner = Block(found[1], _labels(found[2]))
            block.blocks.append(inner)
            if not found[3]:
                _read(lines, inner)
        elif found := _ARGUMENT.match(text):
            value = found[2]
            while _depth(value) > 0:
                value += "\n" + next(lines)
            block.arguments[found[1]] = value
        else:
            raise ValueError(f"this line is neither an argument nor a block: {line}")


def _labels(text: str) -> tuple[str, ...]:
    return tuple(each.strip('"') for each in _STRING.findall(text))


def _depth(value: str) -> int:
    """Return how many brackets are open at the end of an expression."""
    bare = re.sub(r"#.*", "", _STRING.sub('""', value))
    return sum(bare.count(each) for each in "([{") - sum(bare.count(each) for each in ")]}")
