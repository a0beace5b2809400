"""``cloudsched demo``: with Google's Firestore emulator, and with nothing but Python."""

import os
import sys
from pathlib import Path

from tests.harness import process, still_running

DEMO = (sys.executable, "-m", "cloudsched", "demo")
WORDS = [
    "Everything ran on time, once.",
    "Fri 26 Mar 2027 09:00 +0100  2027-03-26 08:00:00",
    "Mon 29 Mar 2027 09:00 +0200  2027-03-29 07:00:00",
    "Fri 29 Oct 2027 09:00 +0200  2027-10-29 07:00:00",
    "Mon 01 Nov 2027 09:00 +0100  2027-11-01 08:00:00",
    "Fri 10 Dec 2027 09:00 +0100  2027-12-10 08:00:00",
    "wake-up 11",
    "Tea is ready, Grace's birthday",
]


def test_the_demo_uses_google_s_emulator_if_there_is_one(firestore_address: str, tmp_path: Path) -> None:
    """It says so, everything runs on time, and no process is left behind."""
    env = {**os.environ, "FIRESTORE_EMULATOR_HOST": firestore_address}
    with process(*DEMO, env=env, cwd=tmp_path) as run:
        family = run.family()
        assert run.wait(200) == 0, run.output
        assert f"Google's Firestore emulator on {firestore_address}" in run.output
        assert [words for words in WORDS if words not in run.output] == []
        assert not still_running(family)


def test_the_demo_works_without_java_and_gcloud(tmp_path: Path) -> None:
    """With nothing on the PATH it uses the embedded store, and says why and how to use the other."""
    env = {name: value for name, value in os.environ.items() if name != "FIRESTORE_EMULATOR_HOST"}
    with process(*DEMO, env={**env, "PATH": str(tmp_path), "HOME": str(tmp_path)}, cwd=tmp_path) as run:
        assert run.wait(200) == 0, run.output
        assert "SQLite, because there is no Firestore emulator: there is no gcloud on the PATH" in run.output
        assert "Install Java" in run.output
        assert [words for words in WORDS if words not in run.output] == []
