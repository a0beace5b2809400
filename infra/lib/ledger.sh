# The ledger: the deployment's state, kept as annotations on the dispatch secret. It records what these scripts have
# created (`created.…`) and what is deployed (`digest.…`, `secret.…`, `schema`, `open.api`, `trust.api`). It lives in the
# project, so any machine can resume an interrupted run. A `created` entry is written before the resource is created, so
# a resource without an entry was not created by these scripts.
# shellcheck shell=bash

declare -A LEDGER=()

read_ledger() {
  local found key value
  LEDGER=()
  found="$(query gcloud secrets describe "$SECRET" --format="json(annotations)" --project="$PROJECT" --quiet)" || return 1
  while IFS='=' read -r key value; do
    [[ -z "$key" ]] || LEDGER["$key"]="$value"
  done < <(python3 -c '
import json, sys
for pair in (json.load(sys.stdin) or {}).get("annotations", {}).items():
    print("=".join(pair))' <<<"$found")
}

# Print an entry's value, or nothing if there is none. A cleared entry holds "none".
get_ledger_entry() {
  local value="${LEDGER[$1]-}"
  [[ "$value" == none ]] || printf '%s' "$value"
}

# Write the KEY=VALUE pairs that differ from the ledger.
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

mark_managed() { record "created.$1=yes"; }
is_managed() { [[ "${LEDGER[created.$1]-}" == yes ]]; }
