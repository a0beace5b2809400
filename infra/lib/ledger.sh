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
  found="$(query gcloud secrets describe "$SECRET" --format="json(annotations)" --project="$PROJECT" --quiet)" || {
    choose_database
    return 1
  }
  while IFS='=' read -r key value; do
    [[ -z "$key" || "$value" == none ]] || put LEDGER "$key" "$value"
  done < <(python3 -c '
import json, sys
for pair in (json.load(sys.stdin) or {}).get("annotations", {}).items():
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
  change "record $list" gcloud secrets update "$SECRET" --update-annotations="$list" --project="$PROJECT" --quiet
}

mark_managed() { record "created.$1=yes"; }
is_managed() { [[ "$(get LEDGER "created.$1")" == yes ]]; }
