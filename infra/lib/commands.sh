# How every script runs: its command line, and the three ways to treat a command (apply, dry run, check).
# shellcheck shell=bash disable=SC2034 # what is set here is used by the scripts

INFRA="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
MODE="apply"
CHANGES=0

say() { printf '%s\n' "$*" >&2; }
step() { say "" "── $*"; }

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# Print a command as it would be typed.
typed() {
  local word line=""
  [[ "$1" != patiently ]] || shift
  for word in "$@"; do
    if [[ "$word" =~ ^[A-Za-z0-9_./:@%+=,-]+$ ]]; then
      line+=" $word"
    else
      line+=" '${word//\'/\'\\\'\'}'"
    fi
  done
  printf '%s\n' "${line# }"
}

# Run a command that changes something; or print it (dry run); or say that it would be needed (check).
change() {
  local what="$1"
  shift
  CHANGES=$((CHANGES + 1))
  case "$MODE" in
    dry-run) typed "$@" ;;
    check) printf 'differs: %s\n' "$what" ;;
    *)
      say "$what"
      "$@" >/dev/null
      ;;
  esac
}

# Run a command again if it fails, for two minutes: what IAM was told just now is known everywhere only after a while.
patiently() {
  local wait
  for wait in 1 2 4 8 16 32 64; do
    if "$@"; then
      return
    fi
    say "  … once more in $wait s"
    sleep "$((wait * ${PATIENCE:-1}))"
  done
  "$@"
}

# Run a command that only reads, and print what it says; 1 if what it asks for does not exist. A dry run asks nothing:
# it prints the command, and goes on as if nothing existed yet.
ask() {
  if [[ "$MODE" == dry-run ]]; then
    typed "$@" >&3
    return 1
  fi
  local errors status=0
  { errors="$("$@" 2>&1 >&4)" || status=$?; } 4>&1
  ((status)) || return 0
  if [[ "${errors,,}" =~ not_found|notfound|not\ found|does\ not\ exist\.|cannot\ find|service_disabled|has\ not\ been\ used\ in\ project ]]; then
    return 1
  fi
  printf '%s\n' "$errors" >&2
  # `ask` runs in a substitution: only the script's own process can end it all.
  kill -s TERM "$$"
  exit 1
}
exec 3>&1

# Make sure of something that either exists or does not: ensure WHAT LEDGER-KEY ASKING-COMMAND -- CREATING-COMMAND
ensure() {
  local what="$1" key="$2" asking=()
  shift 2
  while [[ "$1" != -- ]]; do
    asking+=("$1")
    shift
  done
  shift
  if ask "${asking[@]}" >/dev/null; then
    return
  fi
  mark "$key"
  change "create $what" "$@"
}

CONFIG="$INFRA/config.sh"

# Understand the options that all scripts have; sets REST to the others.
options() {
  REST=()
  while (($#)); do
    case "$1" in
      --config=*) CONFIG="${1#*=}" ;;
      --dry-run) MODE="dry-run" ;;
      --check) MODE="check" ;;
      --help | -h)
        sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
      *) REST+=("$1") ;;
    esac
    shift
  done
}
