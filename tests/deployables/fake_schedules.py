"""Handlers that declare a schedule, and a fake of the `cloudsched apply` that deploy.sh runs for them."""

from __future__ import annotations

from tests.deployables.fake_project import Cloud

PYTHON = """#!/bin/sh
if [ "$2" = cloudsched ]; then
  shift
  env > "{folder}/environment"
  echo "$@" > "{folder}/arguments"
  cat "{folder}/output"
  exit $(cat "{folder}/code")
fi
exec "{folder}/bin/plain-python" "$@"
"""


class Schedules:
    """A deployed project whose handlers declare a schedule, and what `cloudsched apply` answers there."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        program = cloud.folder / "bin" / "python"
        program.rename(program.with_name("plain-python"))
        program.write_text(PYTHON.format(folder=cloud.folder))
        program.chmod(0o755)
        self.answer("Nothing differs.", 0)

    def answer(self, output: str, code: int) -> None:
        (self.cloud.folder / "output").write_text(f"{output}\n")
        (self.cloud.folder / "code").write_text(str(code))

    def declare(self) -> None:
        file = self.cloud.checkout / "functions" / "handlers.py"
        file.write_text(file.read_text() + '\n\n@app.scheduled("every day at 9")\ndef report() -> None: ...\n')

    @property
    def arguments(self) -> str:
        file = self.cloud.folder / "arguments"
        return file.read_text() if file.exists() else ""
