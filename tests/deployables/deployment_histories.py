"""Random histories of a deployment: what its operator does, in any order, while Google and the machine fail.

Scripts are killed at any change, interrupted at any command, answered with errors that are true or not, and run again.
At each command the rules hold that must hold at any time; in the end the scripts' own advice leads to what the
configuration says, and a teardown leaves nothing.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from tests.deployables.fake_databases import FUNCTIONS, add_app, find_served, get_app, make_database
from tests.deployables.fake_delays import TAKEN_FOR
from tests.deployables.fake_gcloud import FakeCloud
from tests.deployables.fake_project import IN_USE, PROJECT, Cloud, Result
from tests.deployables.fake_resources import State, find_reachable_revisions, get_env, is_unchecked

from cloudsched.cli.doctor import command, deployment
from cloudsched.cli.doctor.deployment import CheckResult

SMOKE = f"cloudsched-smoke@{PROJECT}.iam.gserviceaccount.com"
BUSY = (
    "UNAVAILABLE: The service is currently unavailable.",
    "ABORTED: There were concurrent policy changes. Please retry the whole read-modify-write with exponential backoff.",
    "DEADLINE_EXCEEDED: Deadline expired before operation could complete.",
    "INTERNAL: Internal error encountered.",
)
ROUNDS = 14
"""How often the operator follows a script's advice before it counts as useless."""
KEPT = (
    "project/",
    "services",
    "sink/",
    "iam/",
    "rules/",
    "collections",
    "indexes",
    "fields",
    "bucket/gs://run-sources",
)
"""What may be there after a teardown: what was there before, policies of what is gone, and rulesets without use."""


class Broken(AssertionError):
    """A rule that was broken, and when."""


class History:
    """One deployment with an operator who makes changes and mistakes.

    Args:
        seed: What happens.
        folder: Where the scripts are copied to.
        state: The project at the beginning; a new one if None.
    """

    def __init__(self, seed: int, folder: Path, state: State | None = None) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - picks what happens
        self.cloud = Cloud(folder, state)
        self.app = add_app(self.cloud.state)
        """What an app of the same project has; nothing that happens changes it."""
        self.seen: Counter[str] = Counter()
        """How often each thing happened."""
        self.settings: dict[str, str] = {}
        self.log: list[str] = []
        self.broken: list[str] = []
        """What `look` has found, in the thread that answers the scripts."""
        self.serial = 0
        self.restored: set[str] = set()
        """The databases that the operator made, which no script removes."""
        fake = self.cloud.fake
        fake.delays.usable_after = self.chance.choice([0, 60, 400])
        fake.delays.effective_after = self.chance.choice([0, 100, 420])
        fake.delays.known_after = self.chance.choice([0, 30, 100])
        fake.delays.ready_after = self.chance.choice([0, 60, 100])
        fake.contended, fake.build_polls = self.chance.choice([0, 0, 4]), self.chance.choice([1, 1, 5])
        fake.is_quota_hidden = self.chance.random() < 0.2
        fake.has_ghosts = self.chance.random() < 0.5
        if self.chance.random() < 0.3:
            fake.policies.add("iam.allowedPolicyMemberDomains")
        self._shorten()

    def _shorten(self) -> None:
        """Leave a few indexes: requesting seventy in each new database is most of a deployment's work."""
        file = self.cloud.checkout / "infra/firestore.indexes.json"
        content = json.loads(file.read_text("utf-8"))
        content["indexes"] = content["indexes"][:2]
        content["fieldOverrides"] = content["fieldOverrides"][:2]
        content["retired"] = {"indexes": [], "fieldOverrides": []}
        file.write_text(json.dumps(content), "utf-8")

    # ── What happens ─────────────────────────────────────────────────────────────────────────────────────────────────

    def play(self, steps: int) -> None:
        """Let the operator do so many things, then put everything right, then remove it.

        Raises:
            Broken: A rule was broken.
        """
        self.cloud.fake.look = self.look
        self.run("deploy.sh")
        for _ in range(steps):
            self._act()
        self._settle()
        self._tear_down()

    def run(self, script: str, *arguments: str, is_calm: bool = False) -> Result:
        """Run a script, with a fault or without; check what it says and leaves."""
        self.cloud.configure(**self.settings)
        fault = "" if is_calm else self.chance.choice(["", "", "killed", "killed", "interrupted", "refused", "lost"])
        fake, at = self.cloud.fake, self.chance.randint(1, 60)
        fake.trouble = self._make_trouble(fault, at)
        ran = self.cloud.run(script, *arguments, die_at=at if fault == "killed" else 0)
        fake.trouble = lambda _: None
        end = "killed" if ran.code == -9 else "interrupted" if ran.code in {-2, -15, 130, 143} else str(ran.code)
        self.seen[f"{script} {' '.join(arguments)}: {end}".replace(" :", ":")] += 1
        self.log.append(f"{script} {' '.join(arguments)} ({fault} at {at}): {end}; {ran.err[-300:]!r}")
        if self.broken:
            raise Broken(self._tell(self.broken[0]))
        if get_app(self.cloud.state) != self.app:
            raise Broken(self._tell(f"{script} changed what the project's app has"))
        if end == "1" and "error:" not in ran.err.lower() and not ran.out:
            raise Broken(self._tell(f"{script} failed and said nothing: {ran.err}"))
        if end != "killed":
            self._require_no_access(script, ran)
        return ran

    def _make_trouble(self, fault: str, at: int) -> Callable[[list[str]], tuple[int, str, bool] | None]:
        """Return what goes wrong with a command: its exit status, its error, and whether it took effect anyway."""
        count = 0

        def trouble(_: list[str]) -> tuple[int, str, bool] | None:
            nonlocal count
            count += 1
            if count != at * 2:
                return None
            if fault == "interrupted":
                return self.chance.choice([130, 143]), "", False
            return (1, f"ERROR: (gcloud) {self.chance.choice(BUSY)}\n", fault == "lost") if fault else None

        return trouble if fault in {"interrupted", "refused", "lost"} else lambda _: None

    def _act(self) -> None:
        self.serial += 1
        actions: list[tuple[int, Callable[[], object]]] = [
            (4, lambda: self.run("deploy.sh")),
            (1, lambda: self.run("deploy.sh", "--check")),
            (5, self._upgrade),
            (2, lambda: self.run("rollback.sh")),
            (2, lambda: self.run("rotate-secret.sh")),
            (1, lambda: self.run("rotate-secret.sh", self.chance.choice(["--finish", "--compromised"]))),
            (3, self.move),
            (1, self._open_or_close),
            (1, lambda: self.settings.update(PUBLIC_LINKS=self.chance.choice(["yes", "no"]))),
            (1, lambda: self.settings.update(QUEUE_ADMIN=self.chance.choice(["on", "off"]))),
            (2, lambda: self._wait(self.chance.choice([700, 4_000, 32 * 86_400]))),
            (1, self._harm),
        ]
        (action,) = self.chance.choices([each for _, each in actions], [weight for weight, _ in actions])
        action()

    def _upgrade(self) -> None:
        """Change what all functions have, or the API alone, or nothing, and upgrade."""
        changed = self.chance.choice(
            [{"MEMORY": f"{512 + self.serial}Mi"}, {"API_MAX_INSTANCES": f"{self.serial}"}, {}]
        )
        self.settings |= changed
        broken = self.chance.choice(["", "", "", "(BROKEN=yes)", "(DEAF=yes)"])
        self.settings["SETTINGS"] = broken or "()"
        self.run("upgrade.sh")
        self.settings["SETTINGS"] = "()"

    def move(self, name: str = "") -> None:
        """Restore a backup into a new database, or go back to an old one, and move there."""
        name = name or self.chance.choice(["cloudsched", "restored", "another-one"])
        if f"database/{name}" not in self.cloud.state:
            make_database(self.cloud.state, name)
            self.restored.add(f"database/{name}")
        self.settings["DATABASE"] = f"'{name}'"
        self.run("upgrade.sh")

    def _open_or_close(self) -> None:
        if self.settings.pop("API_ACCESS", None) is None:
            self.settings |= {"API_ACCESS": "public", "FIREBASE_PROJECT": PROJECT}

    def _wait(self, seconds: int) -> None:
        self.cloud.fake.delays.time += seconds

    def _harm(self) -> None:
        """Change something by hand that a deployment puts right."""
        state = self.cloud.state
        queues = [each for key, each in state.items() if key.startswith("queue/")]
        policies = [each for key, each in state.items() if key.startswith(("iam/queue", "iam/secret")) and each]
        if policies and self.chance.random() < 0.5:
            self.chance.choice(policies).pop()
        elif queues:
            self.chance.choice(queues)["rateLimits"]["maxDispatchesPerSecond"] = 3.0

    # ── What must hold ───────────────────────────────────────────────────────────────────────────────────────────────

    def look(self, fake: FakeCloud) -> None:
        """Check what must hold at any time."""
        served = find_served(fake)
        if len(served) > 1:
            self.broken.append(f"requests can change {sorted(served)} at the same time")
        state = fake.state
        api = state.get("service/cloudsched-api")
        is_public = ["allUsers", "roles/run.invoker", ""] in state.get("iam/service/cloudsched-api", [])
        if api and (is_public or is_unchecked(api)):
            trusting = [each for each in find_reachable_revisions(api) if "CLOUDSCHED_TRUST_CLOUD_RUN" in get_env(each)]
            if trusting:
                self.broken.append("everybody reaches a revision that trusts unsigned tokens")
        self._look_at_secrets(state)

    def _look_at_secrets(self, state: State) -> None:
        """Check that the executor accepts what is signed now."""
        signed, accepted = set(), []
        for function in FUNCTIONS[:3]:
            status = state.get(f"service/cloudsched-{function}", {"status": {"traffic": []}})["status"]
            for part in status["traffic"]:
                pairs = status["revisions"][part["revisionName"]]["set-secrets"].split(",")
                mounted = dict(pair.split("=") for pair in pairs)
                signed.add(mounted["CLOUDSCHED_SECRET"])
                if function == "execute":
                    accepted.append({*mounted.values()})
        if any(not signed <= each for each in accepted):
            self.broken.append(f"an executor accepts {accepted}, but {signed} are signed with")

    def _require_no_access(self, script: str, ran: Result) -> None:
        """Check that the smoke test's account can do nothing once a script has ended that could clean up."""
        state = self.cloud.state
        account = state.get(f"account/{SMOKE}")
        if account is None or "still has access" in ran.err or script == "rotate-secret.sh":
            return
        if "smoke" in ran.err and not account.get("disabled") and "enable account" in ran.err:
            raise Broken(self._tell(f"{script} left the smoke test's account enabled: {ran.err}"))

    def _tell(self, what: str) -> str:
        return "\n".join([what, *self.log[-12:]])

    # ── How it ends ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _settle(self) -> None:
        """Follow the scripts' advice until nothing differs from the configuration."""
        for _ in range(ROUNDS):
            ran = self.run("deploy.sh", is_calm=True)
            self.seen["rounds"] += 1
            if ran.code == 0 and "run infra/upgrade.sh" not in ran.out:
                break
            self._follow(ran)
        else:
            raise Broken(self._tell("the advice did not lead to an end"))
        ran = self.run("deploy.sh", "--check", is_calm=True)
        if ran.code or ran.out:
            raise Broken(self._tell(f"a deployment that has succeeded differs: {ran.out}{ran.err}"))
        self._check_end()

    def _follow(self, ran: Result) -> None:
        said = ran.err + ran.out
        if "Try again in" in said:
            days = re.search(r"Try again in (\d+) (minutes|days)", said)
            assert days
            self._wait(int(days[1]) * (60 if days[2] == "minutes" else 86_400) + 60)
        elif wanted := re.search(r'DATABASE="([\w()-]+)"', said):
            self.settings["DATABASE"] = f"'{wanted[1]}'"
            self._obey("upgrade.sh")
        elif "wait." in said and "under another NAME" in said:
            self._wait(int(TAKEN_FOR))
        elif "infra/upgrade.sh" in said:
            self._obey("upgrade.sh")
        elif "infra/rollback.sh" in said:
            self._obey("rollback.sh")
        else:
            raise Broken(self._tell(f"it says nothing that can be done: {said}"))

    def _obey(self, script: str) -> None:
        """Run the script that another one named; where that names a third, it is the next one's turn."""
        ran = self.run(script, is_calm=True)
        if ran.code == 0:
            return
        self.seen["advice of advice"] += 1
        if "infra/rollback.sh" in ran.err and script != "rollback.sh":
            self._obey("rollback.sh")
        elif "Try again in" in ran.err or re.search(r'DATABASE="', ran.err):
            self._follow(ran)
        elif "infra/deploy.sh" not in ran.err and "infra/upgrade.sh" not in ran.err:
            raise Broken(self._tell(f"{script} says nothing that can be done: {ran.err}"))

    def _check_end(self) -> None:
        """Check that what is deployed is whole: one database, one revision each, nothing paused, and well."""
        state, database = self.cloud.state, self.settings.get("DATABASE", "cloudsched").strip("'")
        if find_served(self.cloud.fake) != {database}:
            raise Broken(self._tell(f"{find_served(self.cloud.fake)} is served, not {database}"))
        paused = [key for key, each in state.items() if isinstance(each, dict) and each.get("state") == "PAUSED"]
        split = [
            key for key, each in state.items() if key.startswith("service/") and len(each["status"]["traffic"]) != 1
        ]
        if paused or split:
            raise Broken(self._tell(f"paused: {paused}, split: {split}"))
        told = {function: self.cloud.revision(function) for function in FUNCTIONS[:3]}
        serving = {function: [*self.cloud.serving(function)] for function in told}
        newest = {key: [state[f"service/cloudsched-{key}"]["status"]["latestReadyRevisionName"]] for key in told}
        wanted = (self.settings.get("MEMORY", "512Mi"), self.settings.get("API_MAX_INSTANCES", "3"))
        if serving != newest or {(each["memory"], told["api"]["max-instances"]) for each in told.values()} != {wanted}:
            raise Broken(self._tell(f"{serving} serves, whose newest revisions are {told}"))
        if state[f"database/{database}"]["deleteProtectionState"] != "DELETE_PROTECTION_ENABLED":
            raise Broken(self._tell(f"database {database} is not protected"))
        found = look_as_doctor(self.cloud)
        bad = [each for each in found if not each.is_well and each.area != "backups"]  # the first is made tomorrow
        if bad:
            raise Broken(self._tell(f"the doctor finds {bad}"))

    def _tear_down(self) -> None:
        for _ in range(3):
            self.run("teardown.sh", "--yes", "--with-data")
            if "secret/cloudsched-dispatch" not in self.cloud.state:
                break
        else:
            self.run("teardown.sh", "--yes", "--with-data", is_calm=True)
        left = [key for key in self.cloud.state if not key.startswith(KEPT)]
        if set(left) - self.restored - set(self.app):
            raise Broken(self._tell(f"a teardown left {left}"))
        bound = [row for row in self.cloud.bindings() if row[0].startswith("project/")]
        if bound:
            raise Broken(self._tell(f"a teardown left {bound}"))


def look_as_doctor(cloud: Cloud) -> list[CheckResult]:
    """Return what the doctor finds about the project's resources, asking the fake in this process."""

    def run(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        status, output = cloud.fake.execute("gcloud", words[1:], "")
        return subprocess.CompletedProcess(words, status, *(("", output) if status else (output, "")))

    fake = SimpleNamespace(run=run, DEVNULL=subprocess.DEVNULL, TimeoutExpired=subprocess.TimeoutExpired)
    job = cloud.state["job/cloudsched-sweep"]
    found: list[Any] = []
    with patch.object(deployment, "subprocess", fake), patch("shutil.which", lambda _: "gcloud"):
        gcloud = deployment.Gcloud(PROJECT)
        job["lastAttemptTime"] = "2999-01-01T00:00:00Z"
        looked = deployment.Deployment(gcloud, "us-central1", "cloudsched", cloud.config)
        command._look_at_deployment(looked, found.append)  # noqa: SLF001 - all of its checks, without its output
    return found


def play_history(seed: int, folder: Path, *, steps: int = 5) -> Counter[str]:
    """Play one history in a new project; return how often each thing happened.

    Raises:
        Broken: A rule was broken.
    """
    history = History(seed, folder, IN_USE if seed % 2 else None)
    try:
        history.play(steps)
    finally:
        history.cloud.fake.look = lambda _: None
        history.cloud.fake.server_close()
    return history.seen
