"""Every block of README and docs has a reader that runs it, compares it or refuses it: none is only shown."""

from __future__ import annotations

from pathlib import Path

from tests.cases import try_each
from tests.doc_blocks import FENCE, Block, read_blocks
from tests.docs import test_shell_blocks
from tests.harness import ROOT

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(ROOT.glob("infra/**/*.md")),
]
BLOCKS = [(page, block) for page in PAGES for block in read_blocks(page)]
READERS = {
    "python": "architecture/test_code_blocks.py",  # says for each page who runs it
    "mermaid": "architecture/test_site.py",  # each diagram has the picture that Mermaid has drawn of it
    "js": "docs/test_scripts.py",
    "ts": "clients/test_typescript.py",
    "nginx": "local/test_behind_proxies.py",
    **dict.fromkeys(("json", "ini", "dockerfile"), "docs/test_data_blocks.py"),
    **dict.fromkeys(("sh", "bash", "console"), "docs/test_shell_blocks.py"),
}
"""The test that reads the blocks of a language, all of them, on all pages."""
OUTPUTS = {
    "workers.md": "stories/test_workers_guide.py",
    "benchmarks.md": "architecture/test_pages.py",
}
"""Pages with an output that no command directly above it prints, and the test that compares it."""


@try_each("page", PAGES)
def test_every_fence_is_of_a_block(page: Path) -> None:
    """None is overlooked: in a list, with tildes, or without a language."""
    blocks = list(read_blocks(page))
    assert len(FENCE.findall(page.read_text("utf-8"))) == 2 * len(blocks)
    assert {block.language for block in blocks} <= {*READERS, "text"}


@try_each("page, block", BLOCKS)
def test_every_block_has_a_reader(page: Path, block: Block) -> None:
    """Its language's; an output's is the test that runs the command above it, or the one that is named here."""
    if block.language != "text":
        assert (ROOT / "tests" / READERS[block.language]).is_file()
    elif page.name in OUTPUTS:
        assert page.name in (ROOT / "tests" / OUTPUTS[page.name]).read_text("utf-8")
    elif page.name in test_shell_blocks.OWN_TESTS:
        assert "tutorial" in test_shell_blocks.OWN_TESTS[page.name]
    else:
        shown = [step.shown for step in test_shell_blocks.read_steps(page)]
        assert block.text in shown, f"{block} is an output, and no command of its section is directly above it"
