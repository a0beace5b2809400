"""The JavaScript of the pages runs: users' scripts as tasks, what web clients do with stand-ins for Firebase."""

from __future__ import annotations

import json
import re

import _quickjs  # type: ignore[import-not-found]  # it ships no types
import pytest
from tests.doc_blocks import Block, read_blocks
from tests.harness import ROOT

BLOCKS = [
    block for page in sorted((ROOT / "docs").rglob("*.md")) for block in read_blocks(page) if block.language == "js"
]
SCRIPTS_OF_TASKS = {"scripts.md"}
"""Pages whose scripts are run as tasks, by ``architecture/test_page_code.py`` and by the commands below them."""
FIREBASE = """
const app = {}, getFirestore = () => ({}), uid = 'ada', taskId = 'tea', listened = [];
const collection = (_, ...path) => ({path});
const where = (field, operator, value) => ({where: [field, operator, value]});
const orderBy = (field, direction = 'asc') => ({orderBy: [field, direction]});
const limit = (count) => ({limit: count});
const query = (of, ...constraints) => ({...of, constraints});
const onSnapshot = (query, show) => { if (typeof show !== 'function') throw TypeError('show'); listened.push(query); };
const liveTask = (module, db, id, {next, error}) => { if (!id || !next || !error) throw TypeError('liveTask'); };
globalThis.db = {};
const firestore = {}, refuse = () => {}, show = () => {};
"""


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_scripts_run(block: Block) -> None:
    """Without a syntax error, a name that nobody has defined, or a call that is wrong."""
    if "await " in block.text:
        assert block.page in SCRIPTS_OF_TASKS
        _quickjs.Context().eval(f"(async function () {{{block.text}}})")
        return
    listened = json.loads(_quickjs.Context().eval(f"{FIREBASE}\n{block.text}\nJSON.stringify(listened)"))
    assert len(listened) == len(re.findall(r"^onSnapshot", block.text, re.MULTILINE))
    assert all(each["path"] and each["constraints"] for each in listened)
