# The ledger: the list of annotations on the dispatch secret. It says what these scripts have created (`made.…`), and
# what is deployed (`digest.…`, `secret.…`, `schema.…`, `open.api`, `trust.api`). It lies in the cloud, so a run that
# died can be resumed from any machine. Each `made` entry is written before its resource is created: whatever is there
# without one is not ours.
# shellcheck shell=bash

declare -A LEDGER=()

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
