"""What only accept.sh asks of the fake project: lists, a purge, a backup and its import."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tests.deployables.fake_resources import Call, fail

if TYPE_CHECKING:
    from tests.deployables.fake_gcloud import FakeCloud

ACCEPTANCE = (
    "version", "tasks list", "tasks queues purge", "run services list", "firestore databases list", "firestore export",
    "firestore import", "storage rm",
)  # fmt: skip


def run_acceptance(cloud: FakeCloud, call: Call) -> None:
    words = " ".join(call.words)
    if words == "version":
        cloud.say("528.0.0")
    elif words == "tasks list":
        _require(cloud, f"queue/{call.flags['queue']}")
        cloud.say(f"{datetime.now(UTC) + timedelta(days=cloud.hop_days):%Y-%m-%dT%H:%M:%SZ}")
    elif words in {"run services list", "firestore databases list"}:
        kind = "service/" if call.words[0] == "run" else "database/"
        cloud.say("\n".join(key.removeprefix(kind) for key in cloud.state if key.startswith(kind)))
    elif call.words[0] == "firestore":
        _require(cloud, f"database/{call.flags['database']}")
        bucket, _, name = call.words[2].rpartition("/")
        _require(cloud, f"bucket/{bucket}")
        if call.words[1] == "import":
            _require(cloud, f"backup/{bucket}/{name}")
        cloud.change(lambda: cloud.state.update({f"backup/{bucket}/{name}": {}}))
    elif call.words[0] == "storage":
        place = call.words[2]
        _require(cloud, f"bucket/{place}")
        cloud.change(
            lambda: [cloud.state.pop(key) for key in [*cloud.state] if key.partition("/")[2].startswith(place)]
        )
    else:
        _require(cloud, f"queue/{call.words[3]}")
        cloud.change(lambda: None)


def _require(cloud: FakeCloud, key: str) -> None:
    if key not in cloud.state:
        fail(f"NOT_FOUND: {key} was not found")
