"""Try an install in the interpreter that runs this: import all that it is for, and run a simulation.

Usage: python .ci/try_install.py [EXTRA…]
"""

import pkgutil
import sys
from datetime import timedelta
from importlib import import_module
from pathlib import Path

import cloudsched
from cloudsched.testing import Simulation

extras = set(sys.argv[1:])
own = Path(cloudsched.__file__).parent
if (Path(__file__).parents[1] / "src") in own.parents:
    sys.exit(f"{own} is the checkout, not the installed wheel")
left_out = {"cloudsched.__main__", "cloudsched.scripts.quickjs.child"}
left_out |= {"cloudsched.testing.pytest_plugin"}  # pytest imports them
if "telemetry" not in extras:
    left_out |= {"cloudsched.adapters.opentelemetry"}
if "sqlalchemy" not in extras:
    left_out |= {"cloudsched.outbox.sqlalchemy"}
if "mcp" not in extras:
    left_out |= {"cloudsched.agents.command", "cloudsched.agents.server"}
if "dev" not in extras:
    parts = ["cloudsched.app", "cloudsched.web.", "cloudsched.adapters.", "cloudsched.runtime.", "cloudsched.engine."]
    parts += ["cloudsched.outbox."]
else:
    parts = ["cloudsched."]
names = [module.name for module in pkgutil.walk_packages([str(own)], "cloudsched.") if module.name not in left_out]
django = ("cloudsched.local.django", "cloudsched.outbox.django")  # they need a project's settings
chosen = [name for name in names if name.startswith(tuple(parts)) and not name.startswith(django)]
for name in chosen:
    import_module(name)

app = cloudsched.App()


@app.handler("greet")
def greet() -> str:
    """Return what the record has to hold."""
    return "hello"


with Simulation(app) as simulated:
    task = app.create(owner="ada", title="Greeting", handler="greet")
    simulated.advance(timedelta(days=1))
    (execution,) = simulated.executions(task.id)
    if (execution.status, execution.content) != ("SUCCEEDED", "hello"):
        sys.exit(f"the simulation ended {execution.status}")
print(f"  {sys.version.split()[0]}: {len(chosen)} modules imported, a simulation succeeded")
