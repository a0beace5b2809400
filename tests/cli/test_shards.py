"""``cloudsched admin shards``: what it shows and changes, and what it says where there are no shards."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from tests.adapters.firestore.index_rules import Indexes
from tests.adapters.firestore.production import INDEX_FILE, ProductionChannel, ProductionRules
from tests.conftest import MakeTask
from tests.harness import new_project
from tests.instants import MINUTE

from cloudsched.adapters.firestore import rpc
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.adapters.google.channel import open_channel
from cloudsched.cli.operators import shards
from cloudsched.domain.transitions.commit import Commit
from cloudsched.errors import InvalidInput, Misconfigured


def run(*arguments: str) -> str:
    return CliRunner().invoke(shards, arguments, catch_exceptions=False).stdout


@pytest.mark.parametrize("prefix", ["", "cs_"])
def test_the_command_grows_a_database_and_says_how_far_it_is(
    firestore_address: str, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    """Before, after, and again; and it refuses to go back."""
    rules = ProductionRules(Indexes.from_file(INDEX_FILE, "growing", prefix))
    monkeypatch.setattr(rpc, "open_channel", lambda *where: ProductionChannel(open_channel(*where), rules))
    project = new_project()
    store = FirestoreStore(project=project, emulator=firestore_address, deadline=MINUTE, prefix=prefix)
    for number in range(20):
        store.commit(Commit(make_task(id=f"t{number}")))
    store.close()
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", firestore_address)
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", project)
    monkeypatch.setenv("CLOUDSCHED_COLLECTION_PREFIX", prefix)
    assert run("show") == "Not every task has a shard; lists use the indexes without shards.\n"
    grown = run("grow", "4")
    assert grown.startswith("Every task and offer has its place in one of 4 shards (")
    assert "(0 of" not in grown
    assert run("show") == "Every task and offer has its place in one of 4 shards.\n"
    assert run("grow", "4").endswith("(0 of 20 moved).\n")
    with pytest.raises(InvalidInput, match="cannot be lowered"):
        run("grow", "3")


def test_only_firestore_has_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another store says so."""
    monkeypatch.setenv("CLOUDSCHED_STORE", "sqlite")
    with pytest.raises(Misconfigured, match="Only Firestore has shards"):
        run("show")
