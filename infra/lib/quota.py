# ruff: noqa: INP001 - a script among shell scripts, not a package
"""Compare the configured instances with the quota of Cloud Run, and print a configuration that fits it.

Usage: quota.py MILLI-VCPU BYTES MEMORY CONCURRENCY FUNCTION=MAXIMUM… -- QUEUE=RATE/CONCURRENT…

A limit of -1 is none. Exits with 1 if the instances do not fit, after the lines for infra/config.sh that do. Each
instance has one vCPU. Cloud Run looks at the maximum of each revision alone when it is made, and at all that run later.
"""

from __future__ import annotations

import re
import sys

UNITS = {"Mi": 2**20, "Gi": 2**30, "M": 10**6, "G": 10**9}
SHARE = 0.75
"""Of the quota, for the executor: the api, the sweep and links run beside it."""


def read_memory(text: str) -> int:
    """Return bytes."""
    number, unit = re.findall("[0-9]+|[A-Za-z]+", text)
    return int(number) * UNITS[unit]


def fit_queues(queues: dict[str, tuple[int, int]], capacity: int) -> dict[str, tuple[int, int]]:
    """Return queues whose concurrent dispatches together are no more than a capacity, in the same proportions."""
    total = sum(concurrent for _, concurrent in queues.values())
    if total <= capacity:
        return queues
    # Each has at least one; what rounding leaves is given to nobody.
    spare = capacity - len(queues)
    return {
        name: (rate, 1 + max(0, (concurrent - 1) * spare // max(1, total - len(queues))))
        for name, (rate, concurrent) in queues.items()
    }


def main(arguments: list[str]) -> int:
    """Print what fits; return the exit status."""
    cpu, memory, each = int(arguments[0]), int(arguments[1]), read_memory(arguments[2])
    concurrency = int(arguments[3])
    end = arguments.index("--")
    functions = {name: int(value) for name, value in (pair.split("=") for pair in arguments[4:end])}
    limits = (pair.partition("=")[::2] for pair in arguments[end + 1 :])
    queues = {name: (int(value.split("/")[0]), int(value.split("/")[1])) for name, value in limits}
    most = min([limit // needed for limit, needed in ((cpu, 1000), (memory, each)) if limit >= 0], default=sys.maxsize)
    if all(maximum <= most for maximum in functions.values()):
        return 0
    executor = max(1, min(functions["execute"], int(most * SHARE)))
    print(  # noqa: T201 - the script's output
        f"error: the quota for Cloud Run in this region is {cpu / 1000:g} vCPU and {memory / 2**30:g} GiB: at most "
        f"{most} instances of 1 vCPU and {arguments[2]} for a function, but the configuration has "
        + ", ".join(f"{name} {maximum}" for name, maximum in functions.items())
        + ". Ask for more (https://cloud.google.com/run/quotas), or put these lines into the configuration:\n"
    )
    print(f"EXECUTE_MAX_INSTANCES={executor}")  # noqa: T201
    beside = max(1, (most - executor) // 2)
    for name, maximum in functions.items():
        if name != "execute":
            print(f"{name.upper()}_MAX_INSTANCES={min(maximum, beside)}")  # noqa: T201
    shown: set[str] = set()
    for name, (rate, concurrent) in fit_queues(queues, executor * concurrency).items():
        variable = "QUEUE_" + re.sub(r"-q[0-9]+$", "", name).upper()
        if queues[name] != (rate, concurrent) and variable not in shown:
            print(f'{variable}="{rate}/{concurrent}"')  # noqa: T201
            shown.add(variable)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
