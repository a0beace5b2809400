# What every script shares: its options, its output, and how it runs commands (apply, dry run or check).
# shellcheck shell=bash disable=SC2034 # the scripts use the variables set here

# The scripts run with the bash 3.2 and the BSD tools of a Mac. Before 4.4, bash takes an empty array for an unset variable.
((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)) || set -u

INFRA="$(cd "${BASH_SOURCE[0]%/*}/.." && pwd)" # each script sources this file by its path
MODE="apply"
CHANGES=0

exec 8>&2 # where to log from a command whose errors are looked at
log() { printf '%s\n' "$*" >&8; }
log_step() { log "" "── $*"; }

# A check ends with 1 if something differs, and with 2 if it cannot say.
die() {
  printf 'error: %s\n' "$*" >&8
  [[ "$MODE" != check ]] || exit 2
  exit 1
}

AT_EXIT=() # the functions that end a run, however it ends, in their order

# at_exit FUNCTION
at_exit() {
  [[ " ${AT_EXIT[*]} " == *" $1 "* ]] || AT_EXIT+=("$1")
  trap run_at_exit EXIT
}

# Run them all, also if one fails.
run_at_exit() {
  local status=$? each
  trap - ERR EXIT
  for each in "${AT_EXIT[@]}"; do
    "$each" || status=1
  done
  exit "$status"
}

# Print a command as you would type it.
quote_command() {
  local word line=""
  case "$1" in
    retry_contention) shift ;;
    open_to_everybody)
      set -- gcloud run services add-iam-policy-binding "$2" --region="$REGION" --member=allUsers \
        --role=roles/run.invoker --format=none --project="$PROJECT" --quiet
      ;;
    create_queue) set -- gcloud tasks queues create "${@:2}" ;;
  esac
  for word in "$@"; do
    if [[ "$word" =~ ^[A-Za-z0-9_./:@%+=,-]+$ ]]; then
      line+=" $word"
    else
      line+=" '${word//\'/\'\\\'\'}'"
    fi
  done
  printf '%s\n' "${line# }"
}

# Maps, which bash 3.2 does not have: the entry KEY of MAP is the variable MAP__KEY. A key consists of letters, digits and
# . - @ _, which become letters behind an underscore.
name_entry() {
  local key="${2//_/_u}"
  key="${key//-/_h}" key="${key//./_d}"
  ENTRY="$1__${key//@/_a}"
}

# put MAP KEY VALUE
put() {
  name_entry "$1" "$2"
  printf -v "$ENTRY" %s "$3"
}

# get MAP KEY: print the value, or nothing if there is none.
get() {
  name_entry "$1" "$2"
  printf %s "${!ENTRY-}"
}

# require MAP KEY: as `get`, but end the script if there is none.
require() {
  name_entry "$1" "$2"
  [[ -n "${!ENTRY-}" ]] || {
    printf 'error: %s has no entry %s. This is a fault of these scripts.\n' "$1" "$2" >&8
    kill -s TERM "$$" # this runs in a command substitution, where `exit` would end only the subshell
    exit 1
  }
  printf %s "${!ENTRY}"
}

clear_map() {
  local entry
  for entry in $(compgen -v "$1__"); do unset "$entry"; done
}

upper() { tr '[:lower:]' '[:upper:]' <<<"$1"; }
lower() { tr '[:upper:]' '[:lower:]' <<<"$1"; }

# has_line LINE TEXT: test whether a text has this line.
has_line() { [[ $'\n'"$2"$'\n' == *$'\n'"$1"$'\n'* ]]; }

# Set COMMAND to a command. One of gcloud is about the project and asks nothing, unless it has --quiet itself.
complete() {
  local IFS=' '
  COMMAND=("$@")
  [[ " ${*:1:3}" != *" gcloud "* && "$1" != create_queue || " $* " == *" --quiet "* ]] ||
    COMMAND+=(--project="$PROJECT" --quiet)
}

# change WHAT COMMAND: run a command that changes something. A dry run prints the command; a check prints WHAT.
change() {
  local what="$1"
  shift
  complete "$@"
  CHANGES=$((CHANGES + 1))
  POLICY_COMMAND="" # what was read before may have changed
  case "$MODE" in
    dry-run) quote_command "${COMMAND[@]}" ;;
    check) printf 'differs: %s\n' "$what" ;;
    *)
      take_lock
      log "$what"
      run_when_ready "${COMMAND[@]}"
      ;;
  esac
}

# Seconds between two tries of a command that Google refuses because an API, an account, a queue or a role is not known
# everywhere yet: twelve minutes in all. What is refused for another reason is not tried again.
READY_DELAYS=(5 10 20 40 60 60 60 60 60 60 60 60 60 60 60)

# Test whether an error of gcloud, or of an API, says that an API is off, or was enabled only a moment ago.
is_service_off() { [[ "$(lower "$1")" =~ service_disabled|has\ not\ been\ used\ in\ project ]]; }

# Test whether it says that a new account or queue is not known yet, that a new function's account cannot read its secret yet,
# or that the builder cannot build yet.
is_pending() {
  [[ "$(lower "$1")" =~ (account\ [^\ ]+|queue)\ does\ not\ exist|concurrent|permission\ denied\ on\ secret|build\ service\ account ]]
}

# Run a command that changes something, and repeat it while Google is not ready for it. Prints only the errors of the last.
run_when_ready() {
  local delay errors status
  for delay in "${READY_DELAYS[@]}" ""; do
    status=0
    errors="$("$@" 2>&1 >/dev/null)" || status=$?
    ((status)) || return 0
    [[ -n "$delay" ]] || break
    is_service_off "$errors" || is_pending "$errors" || break
    log "  … Google does not know of an API, an account, a queue or a role yet; retrying in $delay s"
    sleep "$delay"
  done
  printf '%s\n' "$errors" >&2
  [[ "$errors" != *AllocPerProjectRegion* ]] || explain_quota "$errors"
  return "$status"
}

# report_difference WHAT: report something that this script does not change.
report_difference() {
  CHANGES=$((CHANGES + 1))
  printf 'differs: %s\n' "$1"
}

# retry_for SECONDS COMMAND: retry a command that is not permitted yet for that long, with pauses that grow to half a minute.
# Prints only the errors of the last try.
retry_for() {
  local seconds="$1" waited=0 wait=1 errors status
  shift
  while true; do
    status=0
    { errors="$("$@" 2>&1 >&4)" || status=$?; } 4>&1
    ((status)) || return 0
    { [[ "$(lower "$errors")" == *permission* ]] && ((waited < seconds)); } || {
      printf '%s\n' "$errors" >&2
      return "$status"
    }
    log "  … Google does not know of a role yet; retrying in $wait s"
    sleep "$wait"
    waited=$((waited + wait)) wait=$((wait < 16 ? wait * 2 : 30))
  done
}

ARE_SERVICES_ON="" # "yes" once this run has seen that all APIs are enabled

# Run a read-only command and print its output; return 1 if the resource does not exist. Any other error ends the
# script. A dry run prints the command and continues as if nothing existed yet. An API that was just enabled is asked again
# until it answers: it would say of everything that it does not exist.
query() {
  complete "$@"
  if [[ "$MODE" == dry-run ]]; then
    quote_command "${COMMAND[@]}" >&3
    return 1
  fi
  local errors status delay
  for delay in "${READY_DELAYS[@]}" ""; do
    status=0
    { errors="$("${COMMAND[@]}" 2>&1 >&4)" || status=$?; } 4>&1
    ((status)) || return 0
    [[ -n "$ARE_SERVICES_ON" && -n "$delay" ]] || break
    is_service_off "$errors" || break
    log "  … Google does not know of an API yet; retrying in $delay s"
    sleep "$delay"
  done
  ! is_not_found "$errors" || return 1
  printf '%s\n' "$errors" >&8
  # This runs in a command substitution, where `exit` would end only the subshell.
  kill -s TERM "$$"
  exit 1
}
exec 3>&1

# Test whether an error of gcloud says that the resource, or its whole service, does not exist.
is_not_found() {
  local pattern='not_found|notfound|not found|does not exist\.|cannot find|service_disabled'
  pattern+='|has not been used in project'
  [[ "$(lower "$1")" =~ $pattern ]]
}

# require_ours KIND/NAME LEDGER-KEY [DIFFERENCE]: end the script if a resource that exists under a name of this deployment
# was made by somebody else, unless the configuration adopts it.
require_ours() {
  local entry
  ! is_managed "$2" || return 0
  for entry in "${ADOPT[@]}"; do
    # shellcheck disable=SC2053 # an entry is a pattern
    [[ "$1" != $entry ]] || return 0
  done
  die "The ${1%%/*} ${1#*/} exists, but these scripts did not make it, and have not changed it.${3:+ $3} Choose another \
NAME, or let them use and change it: ADOPT=(\"$1\")."
}

# Create a resource unless it exists: ensure WHAT KIND/NAME LEDGER-KEY DESCRIBE-COMMAND -- CREATE-COMMAND
ensure() {
  local what="$1" resource="$2" key="$3" describe=()
  shift 3
  while [[ "$1" != -- ]]; do
    describe+=("$1")
    shift
  done
  shift
  if query "${describe[@]}" >/dev/null; then
    require_ours "$resource" "$key"
    return
  fi
  mark_managed "$key"
  change "create $what" "$@"
}

# Say at once what this machine lacks, and where to get it. A dry run needs no gcloud.
require_tools() {
  local tool missing=()
  for tool in curl openssl python3 gcloud; do
    command -v "$tool" >/dev/null || [[ "$tool $* " =~ ^gcloud\ .*--(dry-run|help)\  ]] || missing+=("$tool")
  done
  ! command -v python3 >/dev/null || python3 -c 'import sys; sys.exit(int(sys.version_info < (3, 11)))' ||
    missing+=("Python 3.11 or newer as python3")
  ((${#missing[@]})) || return 0
  local listed
  printf -v listed '%s, ' "${missing[@]}"
  die "This machine lacks: ${listed%, }. Debian: apt install curl openssl python3. A Mac: brew install python. gcloud: \
https://cloud.google.com/sdk/docs/install. Cloud Shell (https://shell.cloud.google.com) has all of it."
}
require_tools "$@"

CONFIG="$INFRA/config.sh"

# Parse the options that all scripts share, and set EXTRA_OPTIONS to the rest.
parse_options() {
  EXTRA_OPTIONS=()
  while (($#)); do
    case "$1" in
      --config=*) CONFIG="${1#*=}" ;;
      --dry-run) MODE="dry-run" ;;
      --check) MODE="check" ;;
      --take-over) TAKE_OVER=yes ;;
      --help | -h)
        sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
      *) EXTRA_OPTIONS+=("$1") ;;
    esac
    shift
  done
}

# Every script has all parts: what one of them needs of another is not listed anywhere.
for part in "$INFRA"/lib/*.sh; do
  # shellcheck disable=SC1090 # each is checked by itself
  [[ "$part" == */commands.sh ]] || source "$part"
done
