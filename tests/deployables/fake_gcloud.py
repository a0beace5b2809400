"""A Google Cloud project in memory, behind the commands `gcloud` and `curl`: it records calls and keeps state.

It supports exactly the commands that ``infra/`` uses, and is as strict as the real services: creating a resource that
exists fails, and so does changing one that does not. Time goes on while a script sleeps, and only then, and what was
changed takes effect when it does at Google (`fake_delays.py`). `die_at` kills the calling script at the n-th change of
the run: before the change if n is odd, after it if n is even.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any

from tests.deployables.fake_acceptance import ACCEPTANCE, run_acceptance
from tests.deployables.fake_databases import LOCATIONS, list_collections, run_firestore
from tests.deployables.fake_delays import QUEUE_NEW, QUEUE_TAKEN, TAKEN_FOR, Delays
from tests.deployables.fake_functions import answer_api, answer_links, refuse
from tests.deployables.fake_monitoring import BILLING_ACCOUNT, answer_monitoring, run_budgets, run_metrics
from tests.deployables.fake_resources import (
    KINDS,
    NUMBER,
    PROJECT,
    QUOTA,
    Call,
    Refusal,
    State,
    create_resource,
    deploy_service,
    describe_resource,
    describe_revision,
    fail,
    list_queues,
    list_quota,
    member_of,
    require_quota,
    update_resource,
)

KILLED = 137
RUNNING = {"tasks": "RUNNING", "scheduler": "ENABLED"}
FOREIGN_MEMBER = (
    "FAILED_PRECONDITION: One or more users named in the policy do not belong to a permitted customer, perhaps due to "
    "an organization policy."
)
NEWEST_PYTHON = "3.14"
"""What a builder takes unless the source says which (cloud.google.com/docs/buildpacks/python)."""
_NEVER = 3600.0
"""Seconds between the server's checks for shutdown. Nobody shuts it down, so the checks need not cost anything."""


class FakeCloud(ThreadingTCPServer):
    """The project, and the server that answers the two commands."""

    daemon_threads = True

    def __init__(self, state: State) -> None:
        super().__init__(("127.0.0.1", 0), _CommandHandler)
        self.state = state
        self.delays = Delays(int(time.time()))
        self.quota = {**QUOTA}
        self.policies: set[str] = set()
        """The organisation's constraints that are enforced (cloud.google.com/run/docs/securing/managing-access)."""
        self.allowed: dict[str, list[str]] = {}
        """By constraint, the only values that the organisation allows."""
        self.is_outside = False
        """Whether the caller is outside of the network, so that Cloud Run has its ingress refuse them."""
        self.is_quota_hidden = False
        """Whether the caller may not read the quota."""
        self.calls: list[list[str]] = []
        self.changes = 0
        self.die_at = 0
        self.deny = ""
        self.interrupt_at = ("", 0)
        """The word of a call that is interrupted by a signal, once, and the exit status of that signal."""
        self.contended = 0
        """How many of the next requests for an index fail because of contention."""
        self.build_polls = 1
        """How often the indexes have to be listed before one that was just requested is ready."""
        self.hidden_indexes = 0
        """How many of the newest composite indexes a list omits: it may be older than the last request."""
        self.hop_days = 29
        """In how many days the first dispatch to a task beyond the queue's horizon is delivered."""
        self.has_ghosts = False
        """Whether creating a queue whose name is still taken seems to succeed: "it may appear to recreate the queue"
        (cloud.google.com/tasks/docs/deleting-appengine-queues-and-tasks)."""
        self.unknown_metrics = 0
        """How often a policy is refused because its metric was created a moment ago."""
        self.polls = 0
        """How often they were listed since then."""
        self.trouble: Callable[[list[str]], tuple[int, str, bool] | None] = lambda _: None
        """What goes wrong with a command: its exit status and its error, and whether it takes effect all the same."""
        self.look: Callable[[FakeCloud], None] = lambda _: None
        """What a test looks at after each command, and each time that a script has slept."""
        self._history: list[str] = []
        self._lock = threading.Lock()
        self._output: list[str] = []
        threading.Thread(target=self.serve_forever, args=(_NEVER,), daemon=True).start()

    def forget(self) -> None:
        self.calls, self.changes, self._history = [], 0, []

    @property
    def history(self) -> list[State]:
        """The state after each change of the run."""
        return [json.loads(state) for state in self._history]

    def execute(self, name: str, arguments: list[str], extra: str) -> tuple[int, str]:
        """Execute a command; return its exit status and its output."""
        with self._lock:
            if name in {"clock", "sleep"}:
                self.delays.time += float((arguments or ["0"])[0])
                self.look(self)
                return 0, f"{self.delays.time:.0f}\n" if name == "clock" else ""
            self.calls.append([name, *arguments])
            self._output = []
            met = self.trouble(arguments)
            if met and not met[2]:
                return met[:2]
            word, status = self.interrupt_at
            if word and any(word in argument for argument in arguments):
                self.interrupt_at = ("", 0)
                return status, ""
            try:
                (self._curl if name == "curl" else self._gcloud)(arguments, extra)
                self.look(self)
            except Refusal as refusal:
                return 1, f"{refusal}\n"
            except _Kill:
                return KILLED, ""
            return met[:2] if met else (0, "".join(self._output))

    def say(self, line: str) -> None:
        self._output.append(line + "\n")

    def change(self, change: Callable[[], object]) -> None:
        """Apply and count a change; kill the script if it is the one that `die_at` names."""
        self.changes += 1
        dies = self.changes == self.die_at
        if not (dies and self.changes % 2):
            change()
            self._history.append(json.dumps(self.state))
        if dies:
            raise _Kill

    def _gcloud(self, arguments: list[str], stdin: str) -> None:
        call = Call(arguments, stdin)
        if self.deny and call.starts(self.deny):
            fail("PERMISSION_DENIED: Permission denied on resource (or it may not exist).")
        self.delays.require_service(call, self.state.setdefault("services", []))
        if call.starts("auth print-identity-token") and "impersonate-service-account" in call.flags:
            self._identity(call.flags["impersonate-service-account"], call.flags["audiences"])
        elif call.starts("auth print-identity-token") and "audiences" in call.flags:
            # As gcloud 528 says to a user, and with the credentials of Workload Identity.
            fail("Invalid account type for `--audiences`. Requires valid service account.")
        elif call.starts("auth"):
            self.say("an-" + call.words[1].removeprefix("print-"))
        elif call.starts("run deploy"):
            self._deploy(call)
        elif call.starts("config get account"):
            self.say(self.delays.operator)
        elif run := next((run for words, run in self._groups().items() if call.starts(words)), None):
            run(call)
        else:
            words, kind = next((words, kind) for words, kind in KINDS.items() if call.starts(words))
            rest = call.words[len(words.split()) :]
            verb, name = rest[0], rest[-1]
            if kind == "account" and "@" not in name:
                name = f"{name}@{call.flags['project']}.iam.gserviceaccount.com"
            if verb.endswith(("iam-policy", "iam-policy-binding")):
                self._policy(call, verb, f"{kind}/{name}")
            else:
                self._resource(call, verb, f"{kind}/{name}")

    def _groups(self) -> dict[str, Callable[[Call], None]]:
        """Return the groups of commands that are not about one named resource, and what answers them."""
        return {
            **{words: partial(run_acceptance, self) for words in ACCEPTANCE},
            "services": self._services,
            "resource-manager org-policies": self._organisation,
            "firestore locations list": lambda _: self.say("\n".join(LOCATIONS)),
            "firestore": partial(run_firestore, self),
            "secrets versions": self._versions,
            "tasks queues list": lambda call: self.say(list_queues(self.state, call)),
            "logging metrics": partial(run_metrics, self),
            "billing projects describe": lambda _: self.say(BILLING_ACCOUNT),
            "billing budgets": partial(run_budgets, self),
            "artifacts repositories set-cleanup-policies": self._clean,
            "run revisions": lambda call: self.say(describe_revision(self.state, call)),
        }

    def _organisation(self, call: Call) -> None:
        """Print the policy that holds for the project: without one, everything is allowed."""
        constraint = call.words[3]
        values = self.allowed.get(constraint, ["C0example"] if constraint in self.policies else None)
        rules = {"allValues": "ALLOW"} if values is None else {"allowedValues": values}
        self.say(json.dumps({"constraint": f"constraints/{constraint}", "listPolicy": rules}))

    def require_allowed(self, constraint: str, value: str) -> None:
        """Refuse what the organisation does not allow. A group of locations is understood as Google describes it."""
        values = self.allowed.get(constraint)
        groups = {f"in:{value.partition('-')[0]}-locations", f"in:{value}-locations"}
        if values is not None and not {value, *groups} & {*values}:
            fail(f"FAILED_PRECONDITION: Constraint constraints/{constraint} violated for {value}.")

    def _resource(self, call: Call, verb: str, key: str) -> None:
        found = self.state.get(key)
        if verb == "create":
            self._create(call, key)
            return
        if found is None:
            fail(f"NOT_FOUND: {key} was not found")
        if verb == "describe":
            self.say("\n".join(describe_resource(key, found, call)))
        elif verb == "delete":
            if key.startswith("queue/"):
                self.delays.mark(f"deleted {key}")
            self.change(lambda: self._delete(key))
        elif verb in {"enable", "disable"}:
            self.change(lambda: found.update(disabled=verb == "disable"))
        elif verb in {"pause", "resume"}:
            self.change(lambda: found.update(state="PAUSED" if verb == "pause" else RUNNING[call.words[0]]))
        elif (
            verb == "update"
            and "no-invoker-iam-check" in call.flags
            and "run.managed.requireInvokerIam" in self.policies
        ):
            fail("FAILED_PRECONDITION: Constraint constraints/run.managed.requireInvokerIam violated.")
        elif verb in {"update", "update-traffic"}:
            is_lock = {"etag", "remove-annotations"} & {*call.flags}  # which changes nothing of a deployment
            apply = (lambda change: change()) if is_lock else self.change
            apply(lambda: update_resource(found, call, key, verb))
        else:
            raise NotImplementedError(call.words)

    def _delete(self, key: str) -> None:
        """Delete a resource, and the images in a repository."""
        kind, _, name = key.partition("/")
        images = [
            each for each, value in self.state.items() if isinstance(value, dict) and value.get("repository") == name
        ]
        for each in [key, *(images if kind == "repository" else ())]:
            self.state.pop(each)

    def _create(self, call: Call, key: str) -> None:
        if key in self.state:
            fail(f"ALREADY_EXISTS: {key} already exists")
        if key.startswith("secret/"):
            for each in call.flags.get("locations", "global").split(","):
                self.require_allowed("gcp.resourceLocations", each)
        if self.delays.has_passed(f"deleted {key}", TAKEN_FOR):
            self.delays.mark(key)
            self.change(lambda: create_resource(self.state, call, key))
        elif self.has_ghosts:
            self.change(lambda: None)
        else:
            fail(QUEUE_TAKEN)

    def _deploy(self, call: Call) -> None:
        name = call.words[2]
        self.require_allowed("run.allowedIngress", call.flags["ingress"])
        self.require_allowed("gcp.resourceLocations", call.flags["region"])
        require_quota(self.quota, call)
        if "source" in call.flags:
            self._require_builder(call)
        elif call.flags["image"] not in self.state:
            fail(f"INVALID_ARGUMENT: Image '{call.flags['image']}' not found.")
        self._require_secrets(call)
        self.change(lambda: deploy_service(self.state, call, name))

    def _clean(self, call: Call) -> None:
        """Give a repository its policies, which have to be those that the file has."""
        policies = json.loads(Path(call.flags["policy"]).read_text("utf-8"))
        self.change(lambda: self.state[f"repository/{call.words[3]}"].update(policies=policies))

    def _require_builder(self, call: Call) -> None:
        """Refuse a build without its files, its repository, or an account that may build."""
        if not Path(call.flags["source"], "main.py").is_file():
            fail("INVALID_ARGUMENT: could not find source: no main.py in the folder.")
        version = Path(call.flags["source"], ".python-version")
        python = version.read_text("utf-8").strip() if version.is_file() else NEWEST_PYTHON
        if f"python{python.replace('.', '')}" != call.flags["base-image"]:
            fail("Build failed: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. (cffi)")
        repository = call.flags["image"].rpartition("/")[2]
        if f"repository/{repository}" not in self.state:
            fail(f"NOT_FOUND: Repository {repository} does not exist.")
        account = call.flags["build-service-account"].rpartition("/")[2]
        if not self.is_granted(f"project/{PROJECT}", f"serviceAccount:{account}", "roles/run.builder", "None"):
            fail(f"PERMISSION_DENIED: Build failed; the build service account {account} lacks permissions.")

    def _require_secrets(self, call: Call) -> None:
        """Refuse a revision whose account cannot read its secrets, as Cloud Run does when it is made."""
        account = call.flags["service-account"]
        for pair in filter(None, call.flags.get("set-secrets", "").split(",")):
            secret = pair.partition("=")[2].partition(":")[0]
            role = "roles/secretmanager.secretAccessor"
            if not self.is_granted(f"secret/{secret}", f"serviceAccount:{account}", role):
                fail(
                    f"spec.template.spec.containers[0].env: Permission denied on secret: projects/{NUMBER}/secrets/"
                    f"{secret} for Revision service account {account}. The service account used must be granted the "
                    f"'Secret Manager Secret Accessor' role ({role}) at the secret, project or higher level."
                )

    def _policy(self, call: Call, verb: str, key: str) -> None:
        if key not in self.state and not key.startswith("project/"):
            fail(f"NOT_FOUND: {key} was not found")
        if key.startswith("queue/") and not self.delays.has_passed(key, self.delays.ready_after):
            fail(QUEUE_NEW)
        bindings = self.state.setdefault("iam/" + key, [])
        if verb == "get-iam-policy":
            has_condition = "condition" in call.flags["format"]
            for member, role, condition in bindings:
                expression, _, title = condition.removeprefix("expression=").partition(",title=")
                shown = expression if "condition.expression" in call.flags["format"] else title
                self.say(f"{role}\t{member}" + (f"\t{shown}" if has_condition else ""))
            return
        binding = [call.flags["member"], call.flags["role"], call.flags.get("condition", "")]
        email = binding[0].partition(":")[2]
        is_account = binding[0].startswith("serviceAccount:")
        is_known = f"account/{email}" in self.state and self.delays.has_passed(
            f"account/{email}", self.delays.known_after
        )
        if verb.startswith("add") and is_account and not is_known:
            fail(f"INVALID_ARGUMENT: Service account {email} does not exist.")
        if verb.startswith("add") and binding[0] == "allUsers" and "iam.allowedPolicyMemberDomains" in self.policies:
            fail(FOREIGN_MEMBER)
        if key.startswith("project/") and not binding[2]:
            fail("Adding a binding without specifying a condition is prohibited in non-interactive mode.")
        if verb.startswith("remove") and binding not in bindings:
            fail("Policy binding with the specified member, role, and condition not found!")
        if not (verb.startswith("add") and binding in bindings):  # a policy is a set
            self.delays.mark(f"iam/{key}: {binding}")
            self.change(lambda: bindings.append(binding) if verb.startswith("add") else bindings.remove(binding))

    def _services(self, call: Call) -> None:
        enabled = self.state.setdefault("services", [])
        if call.words[1] == "list":
            self.say("\n".join(enabled))
        else:
            for service in call.words[2:]:
                if service not in enabled:
                    self.delays.mark(service)
            self.change(lambda: enabled.extend(call.words[2:]))

    def _versions(self, call: Call) -> None:
        name = call.flags.get("secret") or call.words[3]
        secret = self.state.get(f"secret/{name}")
        if secret is None:
            fail(f"NOT_FOUND: Secret {name} not found")
        versions = secret["versions"]
        if call.words[2] == "list":
            for version in sorted((v for v in versions if versions[v] != "DISABLED"), key=int, reverse=True):
                self.say(version)
                if call.flags.get("limit") == "1":
                    break
        elif call.words[2] == "add":
            value = call.stdin
            version = str(len(versions) + 1)
            self.change(lambda: versions.update({version: value}))
            self.say(version)
        elif call.words[2] == "access":
            self.say(versions[call.words[3]])
        else:
            self.change(lambda: versions.update({call.words[3]: "DISABLED"}))

    def _curl(self, arguments: list[str], header: str) -> None:
        """Respond as the Firebase Rules API and the deployed API function do."""
        options = {name: arguments[at + 1] for at, name in enumerate(arguments) if name.startswith("--")}
        url = next(word for word in arguments if word.startswith("https://"))
        headers = dict(line.split('"')[1].split(": Bearer ") for line in header.splitlines())
        body = json.loads(options.get("--data-binary", "null"))
        answer: tuple[int, Any] = (401, {})
        if self.is_outside and "googleapis" not in url:
            answer = (404, "<html>")
        elif "-links-" in url:
            answer = answer_links(self, url)
        elif "googleapis" not in url:
            refused = refuse(self, url, headers)
            answer = (refused, {}) if refused else answer_api(self, options["--request"], url)
        elif headers == {"Authorization": "an-access-token"} and "serviceusage.googleapis" in url:
            answer = (403, {}) if self.is_quota_hidden else (200, list_quota(self.quota))
        elif headers == {"Authorization": "an-access-token"} and "monitoring.googleapis" in url:
            answer = answer_monitoring(self, options["--request"], url, body)
        elif headers == {"Authorization": "an-access-token"} and "firestore.googleapis" in url:
            answer = list_collections(self.state, url)
        elif headers == {"Authorization": "an-access-token"}:
            answer = self._rules(options["--request"], url, body)
        ending = options["--write-out"].replace("\\n", "\n").replace("%{http_code}", str(answer[0]))
        self._output.append(json.dumps(answer[1]) + ending)

    def is_granted(self, key: str, member: str, role: str, condition: str = "") -> bool:
        """Return whether a member has a role on a resource, as far as the services know by now."""
        policy = f"iam/{key}"
        return self.delays.is_effective(policy, [member, role, condition], self.state.get(policy, []))

    def _identity(self, account: str, audience: str) -> None:
        """Print a token for an account, if the operator may impersonate it."""
        if not self.is_granted(
            f"account/{account}", member_of(self.delays.operator), "roles/iam.serviceAccountTokenCreator"
        ):
            fail("PERMISSION_DENIED: Permission 'iam.serviceAccounts.getAccessToken' denied on resource.")
        if self.state[f"account/{account}"].get("disabled"):
            fail("FAILED_PRECONDITION: The service account is disabled.")
        self.say(f"an-identity-token,{account},{audience}")

    def _rules(self, method: str, url: str, body: Any) -> tuple[int, Any]:  # noqa: ANN401 - any JSON
        path = url.partition("/v1/")[2]
        if method == "GET":
            return (200, self.state["rules/" + path]) if "rules/" + path in self.state else (404, {})
        if method == "DELETE" and "rules/" + path not in self.state:
            return 404, {}
        if method == "DELETE":
            self.change(lambda: self.state.pop("rules/" + path))
        elif path.endswith("/rulesets"):
            body["name"] = f"{path}/{sum(key.startswith('rules/') for key in self.state)}"
            self.change(lambda: self.state.update({"rules/" + body["name"]: body}))
        else:
            body = body.get("release", body)
            self.change(lambda: self.state.update({"rules/" + body["name"]: body}))
        return 200, body


class _Kill(Exception):
    """Kill the script that made the call."""


class _CommandHandler(StreamRequestHandler):
    server: FakeCloud

    def handle(self) -> None:
        """Read the number of words, then the words, each ending in a zero byte; write the status and the output."""
        content = b""
        while content.count(b"\0") <= int(content.partition(b"\0")[0] or b"1000"):
            more = self.request.recv(65536)
            if not more:
                return  # the script was killed while sending
            content += more
        _, name, extra, *arguments = content.decode().split("\0")[:-1]
        status, output = self.server.execute(name, arguments, extra)
        answer = output.encode()
        self.wfile.write(f"{status} {len(answer)}\n".encode() + answer)
