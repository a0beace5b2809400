"""Measure how the pages read, and refuse what a native reader would stumble over.

Usage: python .ci/site/prose.py [PAGE ...]      each page's measures and the sentences to mend; without pages, all

Prose is what stands outside code, tables and headings. The pages of `contributors/` are not measured.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MOST_WORDS_ON_AVERAGE = 14.0
LONG = 30
MOST_LONG = 0.03
MOST_SEMICOLONS = 0.01
LEAST_YOU = 0.25
"""Outside the reference, how many sentences speak to the reader."""
_NO_PROSE = re.compile(
    r"^[ ]*(?:```+|~~~+).*?^[ ]*(?:```+|~~~+)$|<!--.*?-->|^<pre>.*?</pre>$|^---\n.*?^---$", re.MULTILINE | re.DOTALL
)
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.|>|!!!.*|\?\?\?.*)\s+")
_END = re.compile(r"(?<=[.!?])[\"')*_]*\s+(?=[\"'(*_`]*[A-Z0-9`])")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|St|No|approx)\.$")
_YOU = re.compile(r"\b(?:you|your|yours|yourself)\b", re.IGNORECASE)
_RELATIVE = re.compile(r"^(?:What|How|Whether|Who|Whoever|Whatever)\b.*[^?]$")


class Measures(NamedTuple):
    """Counts of a page, or of several."""

    sentences: int = 0
    words: int = 0
    long: int = 0
    semicolons: int = 0
    you: int = 0

    def plus(self, other: Measures) -> Measures:
        """Add up two pages."""
        return Measures(*(a + b for a, b in zip(self, other, strict=True)))

    def __str__(self) -> str:
        """Return the shares that are limited."""
        count = max(self.sentences, 1)
        return (
            f"{self.words / count:5.1f} words a sentence, {self.long / count:5.1%} above {LONG}, "
            f"{100 * self.semicolons / count:4.1f} semicolons in 100, {self.you / count:4.0%} with you"
        )


def read_sentences(text: str) -> list[str]:
    """Return the sentences of a page's prose, without markup."""
    paragraphs, lines = [], []
    for line in [*_NO_PROSE.sub("", text).splitlines(), ""]:
        starts = _ITEM.match(line) is not None
        if starts or not line.strip() or line.startswith(("#", "|")):
            paragraphs.append(" ".join(lines))
            lines = []
        if line.strip() and not line.lstrip().startswith(("#", "|", "![", "<", ":::")):
            lines.append(_ITEM.sub("", line).strip())
    found = []
    for paragraph in paragraphs:
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)
        plain = re.sub(r"`[^`]*`", "code", plain).replace("**", "")
        start = 0
        for end in _END.finditer(plain):
            if not _ABBREVIATION.search(plain[: end.start()]):
                found.append(plain[start : end.start()])
                start = end.end()
        found.append(plain[start:])
    return [sentence.strip() for sentence in found if len(sentence.split()) > 1]


def measure(sentences: list[str]) -> Measures:
    """Count what is limited."""
    return Measures(
        len(sentences),
        sum(len(each.split()) for each in sentences),
        sum(len(each.split()) > LONG for each in sentences),
        sum(each.count(";") for each in sentences),
        sum(_YOU.search(each) is not None for each in sentences),
    )


def find_stumbles(sentences: list[str]) -> list[str]:
    """Return the sentences that no page may have."""
    return [each for each in sentences if _RELATIVE.search(each)]


def find_faults(pages: dict[str, str]) -> list[str]:
    """Return what is wrong with these pages, by their paths below the repository; the shares count for all of them."""
    faults, whole, spoken = [], Measures(), Measures()
    for path, text in pages.items():
        sentences = read_sentences(text)
        whole = whole.plus(measure(sentences))
        if not path.startswith("docs/reference/"):
            spoken = spoken.plus(measure(sentences))
        faults += [f"{path}: begins with a relative word: {each}" for each in find_stumbles(sentences)]
    if whole.words > MOST_WORDS_ON_AVERAGE * whole.sentences:
        faults.append(f"{whole.words / whole.sentences:.1f} words a sentence, at most {MOST_WORDS_ON_AVERAGE:.0f}")
    if whole.long > MOST_LONG * whole.sentences:
        faults.append(f"{whole.long / whole.sentences:.1%} of sentences above {LONG} words, at most {MOST_LONG:.0%}")
    if whole.semicolons > MOST_SEMICOLONS * whole.sentences:
        faults.append(f"{whole.semicolons} semicolons in {whole.sentences} sentences, at most one in a hundred")
    if spoken.you < LEAST_YOU * spoken.sentences:
        faults.append(f"{spoken.you / spoken.sentences:.0%} of sentences say you, at least {LEAST_YOU:.0%}")
    return faults


def read_pages() -> dict[str, str]:
    """Return the pages of the navigation that people write."""
    paths = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    return {
        path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
        for path in paths
        if path.parent.name != "contributors"
    }


def main(names: list[str]) -> int:
    """Print the measures; with names, also the sentences to mend."""
    pages = {name: Path(name).read_text("utf-8") for name in names} or read_pages()
    whole = Measures()
    for path, text in pages.items():
        sentences = read_sentences(text)
        whole = whole.plus(measure(sentences))
        print(f"{path:34} {measure(sentences)}")
        for each in sentences if names else []:
            if len(each.split()) > LONG or ";" in each or _RELATIVE.search(each):
                print(f"    {each}")
    print(f"{'together':34} {whole}")
    faults = find_faults(pages)
    print(*faults, sep="\n", end="\n" if faults else "")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
