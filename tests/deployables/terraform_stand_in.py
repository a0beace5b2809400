"""The Terraform module without its resources: what it computes for them, evaluated by Terraform.

Terraform can apply nothing here, because Google's provider has to be downloaded. But the module's resources only hand
on what its variables and locals say, and those need no provider: the stand-in has the variables, the locals, and the
checks between variables, with what the cloud would answer put in.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from tests.deployables.fake_project import ROOT
from tests.deployables.fake_resources import NUMBER

if TYPE_CHECKING:
    from pathlib import Path

MODULE = ROOT / "infra/terraform"
SHOWN = (
    *("bindings", "settings", "mounts", "queues", "functions", "accounts", "composites", "fields", "metrics"),
    *("policies", "sweep_url", "common_settings"),
)
MANY = (
    *("google_cloud_tasks_queue.this", "google_cloud_tasks_queue_iam_member.this"),
    *("google_firestore_index.this", "google_firestore_field.this"),
)
"""The resources of which the stand-in shows the keys."""
ANSWERS = {
    'google_service_account.this["invoker"].email': 'local.stood_in_accounts["invoker"].email',
    "google_service_account.this": "local.stood_in_accounts",
    "data.google_project.this.number": f'"{NUMBER}"',
    "google_secret_manager_secret_version.dispatch": "local.stood_in_versions",
    "google_secret_manager_secret.dispatch.secret_id": '"${var.name}-dispatch"',
    "merge(module.executor, module.senders)": "{}",
    '"${path.module}/.."': f'"{ROOT / "infra"}"',
}
REST = """
locals {
  stood_in_accounts = { for kind in keys(local.accounts) :
    kind => { email = "${var.name}-${kind}@${var.project}.iam.gserviceaccount.com" } }
  stood_in_versions = { for number in var.secret_generations : tostring(number) => { version = tostring(number) } }
}
"""


def write_stand_in(folder: Path) -> None:
    """Write the module's stand-in."""
    folder.mkdir(parents=True)
    code = "".join(file.read_text(encoding="utf-8") for file in sorted(MODULE.glob("*.tf")))
    blocks = re.findall(r'(?ms)^(?:locals|variable "\w+"|resource "terraform_data" "\w+") \{$.*?^\}$', code)
    kept = "\n".join(blocks)
    for asked, answer in ANSWERS.items():
        kept = kept.replace(asked, answer)
    shown = "\n".join(f"    {name} = local.{name}" for name in SHOWN)
    keys = "".join(f'      "{name}" = [for key, _ in {_find_for_each(code, name)} : key]\n' for name in MANY)
    shown += f"\n    made = {{\n{keys}    }}"
    kept += REST + f'output "computed" {{\n  value = {{\n{shown}\n  }}\n}}\n'
    kept += "".join(f'output "{name}" {{\n  value = ""\n}}\n' for name in ("api_url", "settings", "secret"))
    (folder / "main.tf").write_text(kept, encoding="utf-8")


def _find_for_each(code: str, name: str) -> str:
    """Return the expression whose keys say how many of a resource there are."""
    kind, _, label = name.partition(".")
    block = re.search(rf'(?ms)^resource "{kind}" "{label}" \{{$.*?^\}}$', code)
    assert block, f"the module has no {name}"
    found = re.search(r"(?ms)^  for_each +=(.*?)(?=\n  [a-z]|\n\n)", block[0])
    assert found, f"{name} has no for_each"
    return f"({found[1].strip()})"


def require_terraform() -> None:
    """Without Terraform, fail where CI is set, and skip elsewhere."""
    if shutil.which("terraform") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(
            "No terraform on the PATH: developer.hashicorp.com/terraform"
        )


def run_terraform(folder: Path, *words: str) -> tuple[int, str]:
    """Run Terraform without a network or a user's configuration; return its exit status and its output."""
    done = subprocess.run(  # noqa: S603 - the terraform on the PATH
        ["terraform", f"-chdir={folder}", *words],  # noqa: S607 - the same
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
        env={
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder),
            "CHECKPOINT_DISABLE": "1",
            "TF_CLI_CONFIG_FILE": "/dev/null",
        },
    )
    return done.returncode, done.stdout + done.stderr


def evaluate(folder: Path, modules: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return what the module computes for each set of variables."""
    write_stand_in(folder / "stand-in")
    text = "".join(
        f'module "{name}" {{\n  source = "./stand-in"\n'
        + "".join(f"  {variable} = {json.dumps(value)}\n" for variable, value in variables.items())
        + f'}}\noutput "{name}" {{\n  value = module.{name}.computed\n}}\n'
        for name, variables in modules.items()
    )
    (folder / "main.tf").write_text(text, encoding="utf-8")
    for words in (("init", "-input=false"), ("apply", "-auto-approve", "-input=false", "-no-color")):
        code, said = run_terraform(folder, *words)
        assert code == 0, said
    code, said = run_terraform(folder, "output", "-json")
    assert code == 0, said
    return {name: each["value"] for name, each in json.loads(said).items()}
