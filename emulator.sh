#!/usr/bin/env bash
# Everything that runs on your own machine, from a fresh clone on:
#
#   ./emulator.sh demo             watch a year of tasks go by
#   ./emulator.sh dev              run the local stack; `dev -- COMMAND` runs COMMAND against it
#   ./emulator.sh pytest …         run the tests
#   ./emulator.sh check            format, lint, types, architecture
#   ./emulator.sh COMMAND …        any other cloudsched command; --help lists them
#
# It makes a virtual environment in .venv and installs the project into it, again only when pyproject.toml has changed.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=$root/.venv
python=$venv/bin/python
stamp=$venv/.installed
quiet=(--quiet --disable-pip-version-check)

fail() {
    printf '%s\n' "emulator.sh: $*" >&2
    exit 1
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    local name
    for name in python3 python3.13 python3.12 python3.11 python; do
        if is_new_enough "$name"; then
            printf '%s\n' "$name"
            return
        fi
    done
    fail "Python 3.11 or newer is needed, and none is on the PATH. Get it from https://www.python.org/downloads/," \
        "or with your system's package manager."
}

install() {
    local wanted
    wanted="$root $(cksum <"$root/pyproject.toml")"
    if [[ -f $stamp && $(<"$stamp") == "$wanted" ]] && is_new_enough "$python"; then
        return
    fi
    if ! is_new_enough "$python"; then
        local found
        found=$(find_python)
        echo "Making a virtual environment in $venv …" >&2
        "$found" -m venv --clear "$venv" ||
            fail "$found cannot make a virtual environment (Debian and Ubuntu: apt install python3-venv)."
    fi
    echo "Installing cloudsched and its tools into $venv …" >&2
    if ! "$python" -m pip install "${quiet[@]}" --upgrade 'pip>=25.1' ||
        ! "$python" -m pip install "${quiet[@]}" --editable "$root" --group "$root/pyproject.toml:dev"; then
        fail "The installation failed; what pip says is above. Run this again when it can reach its index."
    fi
    printf '%s\n' "$wanted" >"$stamp"
}

check() {
    local failed=()
    cd "$root"
    "$python" -m ruff format --check . || failed+=(format)
    "$python" -m ruff check . || failed+=(lint)
    "$python" -m mypy || failed+=(types)
    "$python" -m pytest tests/architecture || failed+=(architecture)
    [[ ${#failed[@]} == 0 ]] || fail "not as it should be: ${failed[*]}"
}

install
export PATH=$venv/bin:$PATH
case ${1:-} in
pytest)
    shift
    cd "$root"
    exec "$python" -m pytest -n 2 "$@" # of two -n the last one counts
    ;;
check)
    check
    ;;
*)
    exec "$python" -m cloudsched "$@"
    ;;
esac
