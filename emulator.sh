#!/usr/bin/env bash
# Run everything locally, straight from a fresh clone:
#
#   ./emulator.sh demo             run a year of tasks in a few seconds
#   ./emulator.sh dev              start the local stack; `dev -- COMMAND` runs COMMAND against it
#   ./emulator.sh pytest …         run the tests; with --changed those of what you changed, with --all those of a release, too
#   ./emulator.sh check            check formatting, lint, types, the documentation and the architecture;
#                                  with options, such as --data, it is `cloudsched check`
#   ./emulator.sh docs             build the documentation's site into site/, without network
#   ./emulator.sh look             look at every page of the built site in a browser: two widths, light and dark, offline
#   ./emulator.sh update           raise the locked versions of all that is installed here (requirements/*.lock)
#   ./emulator.sh wheel            build the wheel and try it with every Python on this machine (docs/start/quickstart.md)
#   ./emulator.sh release VERSION  rehearse a release in a clone, without publishing (docs/contributors/release.md)
#   ./emulator.sh audit            look for known vulnerabilities in what is installed
#   ./emulator.sh COMMAND …        run any other cloudsched command; --help lists them
#
# The first run creates a virtual environment in .venv and installs there what the command needs: a user's part is smaller
# than a contributor's. Later runs install again only if the locked versions or pyproject.toml have changed.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=$root/.venv
python=$venv/bin/python
stamp=$venv/.installed
layers=(user dev all) # each adds to those before it
pip_options=(--disable-pip-version-check --no-compile --no-deps)

fail() {
    printf '%s\n' "emulator.sh: $*" >&2
    exit 1
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    local name
    for name in python3 python3.14 python3.13 python3.12 python3.11 python; do
        if is_new_enough "$name"; then
            printf '%s\n' "$name"
            return
        fi
    done
    fail "Python 3.11 or newer is needed, but there is none on the PATH. Install it from" \
        "https://www.python.org/downloads/ or with your system's package manager."
}

# install LAYER: install into .venv what a layer needs, unless it is there.
install() {
    local expected installed="" layer have=() locks=()
    for layer in "${layers[@]}"; do
        have+=("$layer")
        locks+=("$root/requirements/$layer.lock")
        [[ $layer != "$1" ]] || break
    done
    expected="$root $(cat "$root/pyproject.toml" "$root"/requirements/*.lock | cksum):"
    [[ ! -f $stamp ]] || ! is_new_enough "$python" || installed=$(<"$stamp")
    [[ $installed != "$expected"*" $1"* ]] || return 0
    if ! is_new_enough "$python"; then
        local found
        found=$(find_python)
        echo "Creating a virtual environment in $venv …" >&2
        "$found" -m venv --clear "$venv" ||
            fail "$found cannot create a virtual environment (on Debian and Ubuntu: apt install python3-venv)."
    fi
    install_locked "$python" "$venv" "${locks[@]}"
    "$python" -m pip install --quiet "${pip_options[@]}" --no-build-isolation --editable "$root" ||
        fail "cloudsched itself could not be installed; see pip's error above."
    printf '%s %s\n' "$expected" "${have[*]}" >"$stamp"
}

# install_locked PYTHON FOLDER LOCK…: install exactly what the lock files name, and say how far it is.
install_locked() {
    local count locks=("${@:3}")
    count=$(cat "${locks[@]}" | grep -c ==)
    echo "Installing $count packages into $2 …" >&2
    "$1" -m pip install "${pip_options[@]}" --require-hashes --progress-bar off "${locks[@]/#/--requirement=}" | show_progress "$count" ||
        fail "The installation failed; see pip's error above. Run this again once pip can reach its package index."
}

# show_progress COUNT: tell of pip's lines how many packages it has: on a terminal in one line, elsewhere of every tenth.
show_progress() {
    local line have=0
    while IFS= read -r line; do
        case $line in
        Collecting* | "Requirement already"*)
            have=$((have + 1))
            if [[ -t 2 ]]; then
                printf '\r\033[K  %s of %s: %s' "$have" "$1" "${line#Collecting }" >&2
            elif ((have % 20 == 0)); then
                printf '  %s of %s …\n' "$have" "$1" >&2
            fi
            ;;
        esac
    done
    [[ ! -t 2 ]] || printf '\r\033[K' >&2
}

# Run all checks, two at a time, and then say which of them failed.
check() {
    local name failed=()
    cd "$root"
    mkdir -p build/check
    check_step types "$python" -m mypy &
    check_step format "$python" -m ruff format --check .
    check_step lint "$python" -m ruff check .
    check_step templates "$python" -m djhtml --check --tabwidth 2 src/cloudsched/dashboard/templates/*.html
    check_step docs build_docs
    check_step prose "$python" .ci/site/prose.py
    check_step architecture "$python" -m pytest -q tests/architecture
    wait
    for name in types format lint templates docs prose architecture; do
        [[ $(<"build/check/$name.code") == 0 ]] || failed+=("$name")
        cat "build/check/$name.log"
    done
    [[ ${#failed[@]} == 0 ]] || fail "checks failed: ${failed[*]}"
    echo "All checks passed."
}

check_step() {
    local code=0
    "${@:2}" >"build/check/$1.log" 2>&1 || code=$?
    echo "$code" >"build/check/$1.code"
}

# Build the site of the documentation; a warning is an error.
build_docs() {
    cd "$root"
    NO_MKDOCS_2_WARNING=1 "$python" -m mkdocs --quiet build --strict && "$python" .ci/site/check.py "$root/site"
}

# install_tools: install what requirements/release.lock names into an environment of its own, build/release.
install_tools() {
    tools=$root/build/release
    local expected
    expected=$(cksum <"$root/requirements/release.lock")
    [[ ! -f $tools/.installed || $(<"$tools/.installed") != "$expected" ]] || return 0
    "$python" -m venv --clear "$tools"
    install_locked "$tools/bin/python" "$tools" "$root/requirements/release.lock"
    printf '%s\n' "$expected" >"$tools/.installed"
}

audit() {
    install_tools
    local report=$root/build/audit.json
    rm -f "$report"
    "$tools/bin/pip-audit" --path "$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
        --skip-editable --progress-spinner off --format json --output "$report" >"$report.log" 2>&1 || true
    "$python" "$root/.ci/read_audit.py" "$report" || fail "the audit failed, for the reason above; pip-audit's own log is $report.log"
}

command=${1:-}
[[ $command != check || $# == 1 ]] || command="cloudsched check" # this clone's own takes no options
case $command in
pytest) [[ " $* " == *" --all "* ]] && install all || install dev ;;
check | docs | look | update | wheel | release | audit) install dev ;;
*) install user ;;
esac
export PATH=$venv/bin:$PATH
case $command in
pytest)
    shift
    cd "$root"
    unset PYTHONDONTWRITEBYTECODE # or each of the many processes that the tests start compiles all of cloudsched again
    exec "$python" -m pytest -n 3 --dist each "$@" # each of three processes has files of its own: tests/run/shards.py
    ;;
check)
    check
    ;;
docs)
    build_docs
    ;;
look)
    build_docs
    exec "$python" .ci/site/browse.py "$root/site" "${@:2}"
    ;;
wheel)
    install_tools
    exec "$root/.ci/wheel" "$tools" "${@:2}"
    ;;
release)
    install_tools
    [[ ${2:-} == v* ]] && exec "$root/.ci/release" "$tools" "$2"
    exec "$root/.ci/release" "$tools" --rehearse "${2:?a version, such as 1.2.3}"
    ;;
audit)
    audit
    ;;
update)
    install_tools
    [[ -z ${PIP_CERT:-} ]] || export SSL_CERT_FILE=${SSL_CERT_FILE:-$PIP_CERT} # uv trusts what pip is told to trust
    "$python" "$root/.ci/lock.py" "$tools/bin/uv"
    ! command -v npm >/dev/null ||
        npm_config_omit_lockfile_registry_resolved=true npm update --package-lock-only --ignore-scripts --no-audit --no-fund --prefix "$root/tests/web/api/node"
    ;;
*)
    export CLOUDSCHED_COMMAND=$0 # what the banner of `dev` tells to write in another terminal
    exec "$python" -m cloudsched "$@"
    ;;
esac
