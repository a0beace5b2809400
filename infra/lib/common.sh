# What all scripts share: the configuration, the three ways to run (apply, dry run, check), and the ledger.
#
# The ledger is the list of annotations on the dispatch secret. It says what these scripts have created (`made.…`), and
# what is deployed (`digest.…`, `secret.…`, `schema.…`). It lies in the cloud, so a run that died can be resumed from
# any machine. Each `made` entry is written before its resource is created: whatever is there without one is not ours.
# shellcheck shell=bash disable=SC2034,SC2153 # what is set here is used by the scripts, and what is used is in the configuration

INFRA="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
MODE="apply"
CHANGES=0
declare -A LEDGER=()

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

# Run a command again if it fails, for half a minute: a new account is unknown to other services for some seconds.
patiently() {
  local wait
  for wait in 1 2 4 8 16; do
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

# ── The configuration ────────────────────────────────────────────────────────────────────────────────────────────────

# Load the configuration, and refuse what cannot work before anything is created.
configure() {
  local file="$1"
  [[ -f "$file" ]] || die "There is no $file. Copy infra/config.example.sh to it and set PROJECT."
  # shellcheck source=config.example.sh
  source "$INFRA/config.example.sh"
  # shellcheck source=config.example.sh
  source "$file"
  [[ "$PROJECT" =~ ^[a-z][a-z0-9-]{4,28}[a-z0-9]$ ]] || die "PROJECT is '$PROJECT'; set it to your project's id in $file."
  [[ "$NAME" =~ ^[a-z][a-z0-9-]{0,18}[a-z0-9]$ ]] || die "NAME is '$NAME'; it is 2 to 20 small letters, digits and hyphens."
  [[ "$API_ACCESS" =~ ^(private|public)$ ]] || die "API_ACCESS is '$API_ACCESS'; it is private or public."
  [[ "$RULES" =~ ^(deploy|keep|replace)$ ]] || die "RULES is '$RULES'; it is deploy, keep or replace."
  ((EXECUTE_TIMEOUT >= 15 && EXECUTE_TIMEOUT <= 1800)) || die "EXECUTE_TIMEOUT is $EXECUTE_TIMEOUT; Cloud Tasks waits from 15 to 1800 seconds."
  ((SWEEP_TIMEOUT >= 15 && SWEEP_TIMEOUT <= 1800)) || die "SWEEP_TIMEOUT is $SWEEP_TIMEOUT; Cloud Scheduler waits from 15 to 1800 seconds."
  local setting priority sum=0
  for setting in "${SETTINGS[@]}"; do
    [[ "$setting" =~ ^[A-Z][A-Z0-9_]*=[^~]*$ ]] || die "SETTINGS has '$setting'; each is NAME=value, without a ~."
    [[ "$setting" != CLOUDSCHED_*SECRET=* ]] || die "SETTINGS has a secret. Secrets live in Secret Manager; see infra/rotate-secret.sh."
  done
  for priority in "${PRIORITIES[@]}"; do
    [[ "$(queue_limits "$priority")" =~ ^([0-9]{1,3})/([0-9]{1,4})$ ]] || die "QUEUE_${priority^^} is '$(queue_limits "$priority")'; it is <a second>/<at the same time>."
    ((BASH_REMATCH[1] >= 1 && BASH_REMATCH[1] <= 500)) || die "QUEUE_${priority^^}: Cloud Tasks dispatches 1 to 500 a second."
    ((BASH_REMATCH[2] >= 1 && BASH_REMATCH[2] <= 5000)) || die "QUEUE_${priority^^}: Cloud Tasks has 1 to 5000 at the same time."
    sum=$((sum + BASH_REMATCH[2]))
  done
  ((sum <= EXECUTE_CONCURRENCY * EXECUTE_MAX_INSTANCES)) || die \
    "The queues send up to $sum dispatches at the same time, but EXECUTE_CONCURRENCY × EXECUTE_MAX_INSTANCES takes only \
$((EXECUTE_CONCURRENCY * EXECUTE_MAX_INSTANCES)). Cloud Run would answer 429, at which Cloud Tasks slows the queues down."
  FUNCTIONS_DIR="${FUNCTIONS_DIR:-$INFRA/../functions}"
  SECRET="$NAME-dispatch"
}

PRIORITIES=(critical high normal low)
FUNCTIONS=(execute sweep api) # the order in which they are deployed: who must understand before who speaks

queue_limits() {
  local name="QUEUE_${1^^}"
  printf '%s' "${!name}"
}

# The name of a priority's queue, as `queue_id` in src/cloudsched/adapters/cloudtasks.py has it.
queue_of() {
  if [[ "$1" == normal ]]; then
    printf '%s' "$NAME"
  else
    printf '%s-%s' "$NAME" "$1"
  fi
}

account() { printf '%s-%s@%s.iam.gserviceaccount.com' "$NAME" "$1" "$PROJECT"; }

# The address that Cloud Run gives a service by its name, whether or not it exists yet; $2 is a revision's tag.
service_url() { printf 'https://%s%s-%s-%s.%s.run.app' "${2:+$2---}" "$NAME" "$1" "$PROJECT_NUMBER" "$REGION"; }

find_project() {
  PROJECT_NUMBER="$(ask gcloud projects describe "$PROJECT" --format="value(projectNumber)" --quiet)" || {
    [[ "$MODE" == dry-run ]] || die "There is no project $PROJECT, or you may not see it (gcloud auth login)."
    PROJECT_NUMBER="PROJECT_NUMBER"
  }
}

# ── The ledger ───────────────────────────────────────────────────────────────────────────────────────────────────────

read_ledger() {
  local found key value
  LEDGER=()
  found="$(ask gcloud secrets describe "$SECRET" --format="json(annotations)" --project="$PROJECT" --quiet)" || return 1
  while IFS='=' read -r key value; do
    [[ -z "$key" ]] || LEDGER["$key"]="$value"
  done < <(python3 -c '
import json, sys
for pair in (json.load(sys.stdin) or {}).get("annotations", {}).items():
    print("=".join(pair))' <<<"$found")
}

# Print an entry, or nothing; an entry that is over says "none".
ledger() {
  local value="${LEDGER[$1]-}"
  [[ "$value" == none ]] || printf '%s' "$value"
}

# Write pairs KEY=VALUE that are not there yet.
record() {
  local pair new=()
  for pair in "$@"; do
    [[ "${LEDGER[${pair%%=*}]-}" == "${pair#*=}" ]] || new+=("$pair")
    LEDGER["${pair%%=*}"]="${pair#*=}"
  done
  ((${#new[@]})) || return 0
  [[ "$MODE" != check ]] || return 0
  local IFS=,
  local list="${new[*]}"
  unset IFS
  change "record $list" gcloud secrets update "$SECRET" --update-annotations="$list" --project="$PROJECT" --quiet
}

mark() { record "made.$1=yes"; }
is_ours() { [[ "${LEDGER[made.$1]-}" == yes ]]; }

# ── The command line ─────────────────────────────────────────────────────────────────────────────────────────────────

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
