#!/usr/bin/env bash
# Run everything locally, straight from a fresh clone:
#
#   ./emulator.sh demo             run a year of tasks in a few seconds
#   ./emulator.sh dev              start the local stack; `dev -- COMMAND` runs COMMAND against it
#   ./emulator.sh pytest …         run the tests
#   ./emulator.sh check            check formatting, lint, types, architecture, the API's description, Terraform and the docs
#   ./emulator.sh docs             build the documentation's site into site/, without network
#   ./emulator.sh look             look at every page of the built site in a browser: two widths, light and dark, offline
#   ./emulator.sh wheel            build the wheel and try it with every Python on this machine (docs/reference/install.md)
#   ./emulator.sh release VERSION  rehearse a release in a clone, without publishing (docs/how-to/release.md)
#   ./emulator.sh audit            look for known vulnerabilities in what is installed
#   ./emulator.sh COMMAND …        run any other cloudsched command; --help lists them
#
# The first run creates a virtual environment in .venv and installs the project there. Later runs reinstall only if
# pyproject.toml has changed.
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
    fail "Python 3.11 or newer is needed, but there is none on the PATH. Install it from" \
        "https://www.python.org/downloads/ or with your system's package manager."
}

install() {
    local expected
    expected="$root $(cksum <"$root/pyproject.toml")"
    if [[ -f $stamp && $(<"$stamp") == "$expected" ]] && is_new_enough "$python"; then
        return
    fi
    if ! is_new_enough "$python"; then
        local found
        found=$(find_python)
        echo "Creating a virtual environment in $venv …" >&2
        "$found" -m venv --clear "$venv" ||
            fail "$found cannot create a virtual environment (on Debian and Ubuntu: apt install python3-venv)."
    fi
    echo "Installing cloudsched and its development tools into $venv …" >&2
    if ! "$python" -m pip install "${quiet[@]}" --upgrade 'pip>=25.1' ||
        ! "$python" -m pip install "${quiet[@]}" --editable "$root" --group "$root/pyproject.toml:dev"; then
        fail "The installation failed; see pip's error above. Run this again once pip can reach its package index."
    fi
    printf '%s\n' "$expected" >"$stamp"
}

check() {
    local failed=()
    cd "$root"
    "$python" -m ruff format --check . || failed+=(format)
    "$python" -m ruff check . || failed+=(lint)
    "$python" -m mypy || failed+=(types)
    build_docs || failed+=(docs)
    "$python" -m pytest tests/architecture || failed+=(architecture)
    "$python" -m pytest -rs -k 'not client' tests/web/api/test_openapi_tools.py || failed+=(openapi)
    check_terraform || failed+=(terraform)
    [[ ${#failed[@]} == 0 ]] || fail "checks failed: ${failed[*]}"
}

# Hold the Terraform module against the scripts, and against checkov's rules for what is open, public or not encrypted.
check_terraform() {
    install_tools checkov terraform
    "$python" -m pytest -rs tests/deployables/test_terraform.py tests/deployables/test_terraform_scale.py &&
        HOME=$tools "$tools/bin/checkov" --directory "$root/infra/terraform" --framework terraform --compact --quiet \
            --skip-download
}

# Build the site of the documentation; a warning is an error.
build_docs() {
    cd "$root"
    NO_MKDOCS_2_WARNING=1 "$python" -m mkdocs --quiet build --strict && "$python" .ci/site/check.py "$root/site" &&
        "$python" .ci/site/names.py "$root/site"
}

# install_tools FOLDER GROUP: install a group of tools apart from the project's own dependencies, into build/FOLDER.
install_tools() {
    tools=$root/build/$1
    [[ -x $tools/bin/python ]] || "$python" -m venv "$tools"
    if ! "$tools/bin/python" -m pip install "${quiet[@]}" --upgrade 'pip>=25.1' ||
        ! "$tools/bin/python" -m pip install "${quiet[@]}" --group "$root/pyproject.toml:$2"; then
        fail "The tools could not be installed; see pip's error above."
    fi
}

audit() {
    install_tools tools release
    local report=$root/build/audit.json
    rm -f "$report"
    "$tools/bin/pip-audit" --path "$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
        --skip-editable --progress-spinner off --format json --output "$report" >"$report.log" 2>&1 || true
    "$python" "$root/.ci/read_audit.py" "$report" || fail "the audit failed, for the reason above; pip-audit's own log is $report.log"
}

install
export PATH=$venv/bin:$PATH
case ${1:-} in
pytest)
    shift
    cd "$root"
    unset PYTHONDONTWRITEBYTECODE # or each of the many processes that the tests start compiles all of cloudsched again
    exec "$python" -m pytest -n 3 --dist worksteal "$@" # waits fill two cores; an -n of yours overrides this one
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
    install_tools tools release
    exec "$root/.ci/wheel" "$tools" "${@:2}"
    ;;
release)
    install_tools tools release
    [[ ${2:-} == v* ]] && exec "$root/.ci/release" "$tools" "$2"
    exec "$root/.ci/release" "$tools" --rehearse "${2:?a version, such as 1.2.3}"
    ;;
audit)
    audit
    ;;
*)
    exec "$python" -m cloudsched "$@"
    ;;
esac
