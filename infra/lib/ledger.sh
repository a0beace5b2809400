# The ledger: the deployment's state, kept as annotations on the dispatch secret. It records what these scripts have
# created (`created.…`) and what is deployed (`digest.…`, `secret.…`, `schema`, `open.api`, `trust.api`). It lives in the
# project, so any machine can resume an interrupted run. A `created` entry is written before the resource is created, so
# a resource without an entry was not created by these scripts.
# shellcheck shell=bash

# The entries that have a value. One that holds "none" in the project was cleared, which is the same as not to be there.
# They are the map LEDGER.
read_ledger() {
  local found key value
  clear_map LEDGER
  ETAG=""
  found="$(query gcloud secrets describe "$SECRET" --format="json(annotations,etag)")" || {
    choose_database
    return 1
  }
  while IFS='=' read -r key value; do
    case "$key=$value" in
      = | *=none) ;;
      etag=*) ETAG="$value" ;;
      *) put LEDGER "$key" "$value" ;;
    esac
  done < <(python3 -c '
import json, sys
found = json.load(sys.stdin) or {}
for pair in [("etag", found.get("etag", "")), *found.get("annotations", {}).items()]:
    print("=".join(pair))' <<<"$found")
  choose_database
  require_same_prefix
}

# Refuse other collections than those of the deployed tasks, which nobody would look at any more.
require_same_prefix() {
  local deployed
  deployed="$(get LEDGER prefix)"
  [[ "$deployed" == "$COLLECTION_PREFIX" || -z "$deployed$(get LEDGER digest.execute)$(get LEDGER created.database)" ]] ||
    die "COLLECTION_PREFIX is '$COLLECTION_PREFIX', but the tasks of this deployment are in collections with '$deployed'. \
It cannot be changed: set it back."
}

# The lock: an entry that a script has while it changes something, so that two operators do not change a deployment at
# once. A script takes it before its first change, and only if the ledger is still what it has read: Secret Manager refuses
# an update with an etag that is not the newest. A script that is killed leaves it. The next one on that machine sees that
# its process is gone; on others it counts for as long as a run can take.
LOCK_SECONDS=10800
LOCK=""      # what the entry says once this script has it; "none" in a script that takes none
TAKE_OVER="" # "yes" lets it take that of another one
ETAG=""      # of the ledger that was read; empty while there is none

describe_lock() { printf '%s/%s/%s/%s' "$(date +%s)" "$HOSTNAME" "$$" "${0##*/}"; }

# Test whether there is a process, which may be another user's.
is_alive() {
  local errors
  errors="$(LC_ALL=C && kill -0 "$1" 2>&1)" || [[ "$errors" != *"No such process"* ]]
}

# Take the lock before the first change of a run, or end the script.
take_lock() {
  [[ -z "$LOCK" && "$MODE" == apply && -n "$ETAG" ]] || return 0
  local since host process script errors own
  IFS=/ read -r since host process script <<<"$(get LEDGER lock)"
  if [[ -n "$since" && -z "$TAKE_OVER" ]] && (($(date +%s) - since < LOCK_SECONDS)) &&
    { [[ "$host" != "$HOSTNAME" ]] || is_alive "$process"; }; then
    die "infra/$script is at work on this deployment, on $host as process $process, since $((($(date +%s) - since) / 60)) \
minutes. Wait until it has ended. If it has been killed, add --take-over."
  fi
  own="$(describe_lock)"
  errors="$(gcloud secrets update "$SECRET" --update-annotations="lock=$own" --etag="$ETAG" --project="$PROJECT" \
    --quiet 2>&1 >/dev/null)" || die "This script could not begin: another one has changed the deployment since it looked, \
or you may not change secret $SECRET. Run it again. gcloud says: $errors"
  hold_lock "$own"
}

# hold_lock ENTRY
hold_lock() {
  [[ "$MODE" == apply ]] || return 0
  LOCK="$1"
  at_exit release_lock
}

# Give the lock back, unless somebody has taken it over.
release_lock() {
  local own="$LOCK"
  [[ -n "$own" && "$own" != none ]] || return 0
  LOCK=""
  [[ "$(gcloud secrets describe "$SECRET" --format="value(annotations.lock)" --project="$PROJECT" --quiet 2>&1)" == "$own" ]] ||
    return 0
  gcloud secrets update "$SECRET" --remove-annotations=lock --project="$PROJECT" --quiet >/dev/null 2>&1 ||
    log "The lock of this deployment is left in secret $SECRET; on another machine the next script needs --take-over."
}

# Set DATABASE if the configuration names none: to the one that is deployed, or to one of this deployment's own. Its ID is
# NAME; Firestore wants four characters at least.
choose_database() {
  [[ -n "$DATABASE" ]] || DATABASE="$(get_deployed_database)"
  [[ -n "$DATABASE" ]] || DATABASE="$NAME"
  ((${#DATABASE} >= 4)) || DATABASE="cloudsched-$DATABASE"
}

# Write the KEY=VALUE pairs that differ from the ledger. The value "none" clears an entry.
record() {
  local pair key value new=()
  for pair in "$@"; do
    key="${pair%%=*}" value="${pair#*=}"
    [[ "$value" != none ]] || value=""
    [[ "$(get LEDGER "$key")" == "$value" ]] || new+=("$pair")
    put LEDGER "$key" "$value"
  done
  ((${#new[@]})) || return 0
  [[ "$MODE" != check ]] || return 0
  local IFS=,
  local list="${new[*]}"
  unset IFS
  change "record $list" gcloud secrets update "$SECRET" --update-annotations="$list"
}

mark_managed() { record "created.$1=yes"; }
is_managed() { [[ "$(get LEDGER "created.$1")" == yes ]]; }
