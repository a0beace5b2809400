# What every script shares: its options, its output, and how it runs commands (apply, dry run or check).
# shellcheck shell=bash disable=SC2034 # the scripts use the variables set here

INFRA="$(cd "${BASH_SOURCE[0]%/*}/.." && pwd)" # each script sources this file by its path
MODE="apply"
CHANGES=0

log() { printf '%s\n' "$*" >&2; }
log_step() { log "" "── $*"; }

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# Print a command as you would type it.
quote_command() {
  local word line=""
  [[ "$1" != retry && "$1" != retry_contention ]] || shift
  for word in "$@"; do
    if [[ "$word" =~ ^[A-Za-z0-9_./:@%+=,-]+$ ]]; then
      line+=" $word"
    else
      line+=" '${word//\'/\'\\\'\'}'"
    fi
  done
  printf '%s\n' "${line# }"
}

# has_line LINE TEXT: test whether a text has this line.
has_line() { [[ $'\n'"$2"$'\n' == *$'\n'"$1"$'\n'* ]]; }

# change WHAT COMMAND: run a command that changes something. A dry run prints the command; a check prints WHAT.
change() {
  local what="$1"
  shift
  CHANGES=$((CHANGES + 1))
  POLICY_COMMAND="" # what was read before may have changed
  case "$MODE" in
    dry-run) quote_command "$@" ;;
    check) printf 'differs: %s\n' "$what" ;;
    *)
      log "$what"
      "$@" >/dev/null
      ;;
  esac
}

# report_difference WHAT: report something that this script does not change.
report_difference() {
  CHANGES=$((CHANGES + 1))
  printf 'differs: %s\n' "$1"
}

# Retry a failing command for two minutes: a change in IAM takes time to reach every server.
retry() {
  local wait
  for wait in 1 2 4 8 16 32 64; do
    if "$@"; then
      return
    fi
    log "  … retrying in $wait s"
    sleep "$((wait * ${DELAY_FACTOR:-1}))"
  done
  "$@"
}

# Run a read-only command and print its output; return 1 if the resource does not exist. Any other error ends the
# script. A dry run prints the command and continues as if nothing existed yet.
query() {
  if [[ "$MODE" == dry-run ]]; then
    quote_command "$@" >&3
    return 1
  fi
  local errors status=0
  { errors="$("$@" 2>&1 >&4)" || status=$?; } 4>&1
  ((status)) || return 0
  ! is_not_found "$errors" || return 1
  printf '%s\n' "$errors" >&2
  # This runs in a command substitution, where `exit` would end only the subshell.
  kill -s TERM "$$"
  exit 1
}
exec 3>&1

# Test whether an error of gcloud says that the resource, or its whole service, does not exist.
is_not_found() {
  local pattern='not_found|notfound|not found|does not exist\.|cannot find|service_disabled'
  pattern+='|has not been used in project'
  [[ "${1,,}" =~ $pattern ]]
}

# Create a resource unless it exists: ensure WHAT LEDGER-KEY DESCRIBE-COMMAND -- CREATE-COMMAND
ensure() {
  local what="$1" key="$2" describe=()
  shift 2
  while [[ "$1" != -- ]]; do
    describe+=("$1")
    shift
  done
  shift
  if query "${describe[@]}" >/dev/null; then
    return
  fi
  mark_managed "$key"
  change "create $what" "$@"
}

CONFIG="$INFRA/config.sh"

# Parse the options that all scripts share, and set EXTRA_OPTIONS to the rest.
parse_options() {
  EXTRA_OPTIONS=()
  while (($#)); do
    case "$1" in
      --config=*) CONFIG="${1#*=}" ;;
      --dry-run) MODE="dry-run" ;;
      --check) MODE="check" ;;
      --help | -h)
        sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
      *) EXTRA_OPTIONS+=("$1") ;;
    esac
    shift
  done
}
