"""What ``cloudsched init --ci github`` writes: workflows without keys, and a script that deploys and goes back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel
from tests.deployables.fake_functions import refuse
from tests.deployables.fake_project import PROJECT, ROOT, Cloud
from tests.deployables.fake_resources import State, get_env
from tests.deployables.real_gcloud import find_gcloud
from tests.harness import run_to_end
from tests.instants import SECOND

from cloudsched import App, Context, Settings
from cloudsched.local.wsgi_server import WebServer
from cloudsched.testing import Simulation
from cloudsched.web.functions import wsgi

WORKFLOWS = ("deploy", "pipeline")
DEPLOYER = f"deployer@{PROJECT}.iam.gserviceaccount.com"


class Text(BaseModel):
    text: str


class Staging:
    """The fake project as CI sees it, and the real API, which answers as the revisions that serve there."""

    def __init__(self, project: Path, folder: Path, state: State | None = None) -> None:
        self.project = project
        self.cloud = Cloud(folder, state)
        self.cloud.fake.delays.operator = DEPLOYER
        if state is None:
            member = f"serviceAccount:{DEPLOYER}"
            self.cloud.state["services"] = ["cloudresourcemanager.googleapis.com"]  # as infra/README.md says
            self.cloud.state[f"account/{DEPLOYER}"] = {"email": DEPLOYER}
            self.cloud.state[f"iam/account/{DEPLOYER}"] = [[member, "roles/iam.serviceAccountTokenCreator", ""]]
        program = self.cloud.folder / "bin" / "cloudsched"
        program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT}/src exec {sys.executable} -m cloudsched "$@"\n')
        program.chmod(0o755)
        python = (
            self.cloud.folder / "bin" / "python"
        )  # Firestore is not there: test_infra_schedules.py applies schedules
        python.write_text(python.read_text().replace("\n", '\n[ "$3" != apply ] || exit 0\n', 1))

    def make_app(self) -> App:
        app = App(Settings())

        @app.handler("remind", retry=False)
        def remind(_ctx: Context, payload: Text) -> None:
            if self.has_setting("execute", "FORGETFUL"):
                raise ValueError(f"the new code forgets {payload.text}")

        return app

    def has_setting(self, function: str, name: str) -> bool:
        status = self.cloud.state[f"service/cloudsched-{function}"]["status"]
        return any(name in get_env(status["revisions"][each["revisionName"]]) for each in status["traffic"])

    def answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """Let through whom Cloud Run and the serving API let through, and answer with the real API."""
        token = environ.pop("HTTP_AUTHORIZATION", "Bearer nobody,,").removeprefix("Bearer ")
        refused = refuse(self.cloud.fake, "https://api", {"Authorization": token})
        if refused or self.has_setting("api", "DOWN"):
            start(f"{refused or 503} Refused", [("Content-Type", "text/html")])
            return [b"<html>Cloud Run</html>"]
        self.sim.advance(SECOND)  # meanwhile the queue brings what is due
        return self.api(environ, start)

    def run(self, *words: str, settings: str = "") -> tuple[int, str]:
        """Run the pipeline's script with the real doctor; return its exit status and its output."""
        staging = self.project / "infra" / "staging.sh"
        text = staging.read_text()
        self.cloud.fake.forget()
        with Simulation(self.make_app()) as self.sim, WebServer(self.answer) as server:
            self.api = wsgi(self.sim.app)
            server.serve()
            self.cloud.fake.look = lambda fake: fake.state.get("service/cloudsched-api", {"status": {}})[
                "status"
            ].update(url=f"http://{server.address}")
            try:
                staging.write_text(f"{text}SETTINGS=({settings})\n")
                done = run_to_end(
                    [str(self.project / "infra" / "pipeline.sh"), *words],
                    env=self.cloud.environment | {"CLOUDSCHED": str(self.cloud.checkout), "DEPLOYER": DEPLOYER},
                    start_new_session=True,
                )
            finally:
                staging.write_text(text)
        return done.returncode, done.stdout + done.stderr

    def count_revisions(self) -> int:
        services = (value for key, value in self.cloud.state.items() if key.startswith("service/"))
        return sum(len(each["status"]["revisions"]) for each in services)

    def list_serving(self) -> list[dict[str, int]]:
        return [self.cloud.serving(function) for function in ("execute", "sweep", "api")]


@pytest.fixture(name="project", scope="module")
def write_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with workflows for GitHub, whose environment `staging` is the fake project."""
    folder = tmp_path_factory.mktemp("pipeline") / "shop"
    command = [sys.executable, "-m", "cloudsched", "init", str(folder), "--ci", "github"]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own command
    staging = folder / "infra" / "staging.sh"
    text = staging.read_text().replace('PROJECT=""', f'PROJECT="{PROJECT}"')
    staging.write_text(text + f'MONITORING=off\nSERVICE_ACCOUNTS=("{DEPLOYER}=admin")\n')
    return folder


@pytest.fixture(name="first", scope="module")
def deploy_staging(project: Path, tmp_path_factory: pytest.TempPathFactory) -> State:
    """An empty project that the pipeline has deployed."""
    staging = Staging(project, tmp_path_factory.mktemp("staging"))
    code, output = staging.run("deploy", "staging")
    assert code == 0, output
    assert "All is well." in output
    return staging.cloud.state


@pytest.fixture
def staging(project: Path, first: State, tmp_path: Path) -> Iterator[Staging]:
    """What the first run of the pipeline has deployed."""
    handlers = project / "functions" / "handlers.py"
    text = handlers.read_text()
    yield Staging(project, tmp_path, deepcopy(first))
    handlers.write_text(text)


def load(project: Path, name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((project / ".github" / "workflows" / f"{name}.yml").read_text())
    return content


def test_the_workflows_hold_no_key(project: Path) -> None:
    """They are recognised by a token that GitHub issues, and only the jobs that reach the cloud may ask for one."""
    texts = [(project / ".github" / "workflows" / f"{name}.yml").read_text() for name in WORKFLOWS]
    assert not any(word in text for text in texts for word in ("secrets.", "credentials_json", "_KEY"))
    deploy = load(project, "deploy")
    assert deploy["permissions"] == {"contents": "read"}
    asking = {name for name, job in deploy["jobs"].items() if "id-token" in job.get("permissions", {})}
    assert asking == {name for name, job in deploy["jobs"].items() if "uses" in job}
    (auth,) = [step for step in load(project, "pipeline")["jobs"]["step"]["steps"] if "auth@" in step.get("uses", "")]
    assert set(auth["with"]) == {"workload_identity_provider", "service_account"}


def test_no_input_is_part_of_a_command(project: Path) -> None:
    """What somebody types into the form reaches the shell as a variable, never as text of the script."""
    steps = [
        step for name in WORKFLOWS for job in load(project, name)["jobs"].values() for step in job.get("steps", ())
    ]
    assert steps
    assert not [step for step in steps if "${{" in step.get("run", "")]


def test_the_plan_changes_nothing(project: Path, staging: Staging, tmp_path: Path) -> None:
    """It lists what an empty project differs in, and nothing after a deployment."""
    empty = Staging(project, tmp_path / "empty")
    for each, differs in ((empty, True), (staging, False)):
        code, output = each.run("plan", "staging")
        assert (code, "differs:" in output) == (0, differs), output
        assert each.cloud.changes == 0


def test_a_deployment_without_a_change_touches_nothing(staging: Staging) -> None:
    """Nothing is built, deployed or granted; the doctor looks all the same, as the account that deploys."""
    code, output = staging.run("deploy", "staging")
    assert code == 0, output
    assert "canary     a task with the handler remind was created, ran and was deleted" in output
    assert staging.cloud.changes == 0


def test_a_good_change_goes_out(project: Path, staging: Staging) -> None:
    """All functions serve the new code, and all is well."""
    before = staging.list_serving()
    handlers = project / "functions" / "handlers.py"
    handlers.write_text(handlers.read_text() + "\nNEW = True\n")
    code, output = staging.run("deploy", "staging")
    assert code == 0, output
    assert "All is well." in output
    assert all({*old}.isdisjoint(new) for old, new in zip(before, staging.list_serving(), strict=True))


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("BROKEN", "The upgrade failed"),
        ("FORGETFUL", "the new code forgets"),
        ("DOWN", "is not ready"),
    ],
)
def test_a_bad_change_goes_back(staging: Staging, setting: str, complaint: str) -> None:
    """Whether the smoke test finds it or the doctor: the revisions before serve again, and the job fails."""
    before, count = staging.list_serving(), staging.count_revisions()
    code, output = staging.run("deploy", "staging", settings=f"{setting}=yes")
    assert code == 1, output
    assert complaint in output
    assert staging.list_serving() == before
    assert staging.count_revisions() > count
    code, output = staging.run("deploy", "staging")
    assert code == 0, output


def test_what_new_code_cannot_have_caused_takes_no_code_back(project: Path, staging: Staging) -> None:
    """A queue that somebody paused, a role that the pipeline lacks: the job fails, and the new code serves."""
    before = staging.list_serving()
    staging.cloud.state["queue/cloudsched-low"]["state"] = "PAUSED"
    handlers = project / "functions" / "handlers.py"
    handlers.write_text(handlers.read_text() + "\nNEW = True\n")
    code, output = staging.run("deploy", "staging")
    assert code == 1
    assert "cloudsched-low is PAUSED" in output
    assert all({*old}.isdisjoint(new) for old, new in zip(before, staging.list_serving(), strict=True))


def test_a_run_that_changed_nothing_takes_nothing_back(staging: Staging) -> None:
    """What breaks between two deployments is not the last one's fault: the code before it is older still."""
    assert staging.run("deploy", "staging", settings="GOOD=yes")[0] == 0
    for each in staging.cloud.state["service/cloudsched-execute"]["status"]["revisions"].values():
        each["set-env-vars"] += "~FORGETFUL=yes"
    serving = staging.list_serving()
    code, output = staging.run("deploy", "staging", settings="GOOD=yes")
    assert code == 1
    assert "the new code forgets" in output
    assert staging.list_serving() == serving


def test_no_token_is_made_for_an_account_that_may_not_make_one(staging: Staging) -> None:
    """The doctor says which role is missing; gcloud gives nothing without it to Workload Identity."""
    staging.cloud.state[f"iam/account/{DEPLOYER}"].clear()
    code, output = staging.run("deploy", "staging")
    assert code == 1
    assert f"roles/iam.serviceAccountTokenCreator on {DEPLOYER}" in output.replace("\n", " ")


class TokenServer(BaseHTTPRequestHandler):
    """What Google answers to an account of Workload Identity (cloud.google.com/iam/docs/reference/sts/rest)."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/token":
            kind = "urn:ietf:params:oauth:token-type:access_token"
            answer = {"access_token": "s", "issued_token_type": kind, "token_type": "Bearer", "expires_in": 3600}
        elif self.path.endswith(":generateAccessToken"):
            answer = {"accessToken": "a", "expireTime": "2099-01-01T00:00:00Z"}
        else:
            claims = {"aud": json.loads(body)["audience"], "exp": 4_000_000_000, "account": self.path}
            answer = {"token": f"e30.{urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.e30"}
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - its name there
        pass


def test_the_real_gcloud_gives_the_doctor_a_token(staging: Staging, tmp_path: Path) -> None:
    """With the credentials that GitHub's action leaves, the doctor's command gets one; without impersonation none."""
    find_gcloud()
    assert staging.run("deploy", "staging")[0] == 0
    (asked,) = [call for call in staging.cloud.calls if call[1:3] == ["auth", "print-identity-token"]]
    with ThreadingHTTPServer(("127.0.0.1", 0), TokenServer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        pool = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/github/providers/github"
        account = f"{url}/v1/projects/-/serviceAccounts/{DEPLOYER}:generateAccessToken"
        (tmp_path / "token").write_text("of GitHub")
        credentials = {
            "type": "external_account",
            "audience": pool,
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "token_url": f"{url}/token",
            "service_account_impersonation_url": account,
            "credential_source": {"file": str(tmp_path / "token")},
        }
        (tmp_path / "credentials.json").write_text(json.dumps(credentials))
        environment = os.environ | {
            "CLOUDSDK_CONFIG": str(tmp_path / "config"),
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_IAMCREDENTIALS": f"{url}/",
        }

        def type_words(*words: str) -> subprocess.CompletedProcess[str]:
            return run_to_end([str(shutil.which("gcloud")), *words, "--quiet"], env=environment)

        assert type_words("auth", "login", f"--cred-file={tmp_path / 'credentials.json'}").returncode == 0
        plain = [word for word in asked[1:] if not word.startswith("--impersonate")]
        assert "Invalid account type for `--audiences`" in type_words(*plain).stderr
        done = type_words(*asked[1:])
        server.shutdown()
    claims = json.loads(urlsafe_b64decode(done.stdout.split(".")[1] + "=="))
    assert claims["aud"].startswith("https://cloudsched-api-")
    assert DEPLOYER in claims["account"]
