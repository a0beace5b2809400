#!/usr/bin/env bash
# Send all requests back to the revisions that served before the last upgrade. It takes seconds and builds nothing.
# Functions that the upgrade did not change stay as they are.
#
# Usage: infra/rollback.sh [--dry-run] [--config=FILE] [--force] [--since=SECONDS] [--take-over]
#
# --since goes back only if the last upgrade ended after that time, in seconds since 1970: for a pipeline that does not know
# whether it has changed anything.
#
# It refuses if documents have been written since then that the old code cannot read, or indexes removed that it needs.
# --force overrides this; those tasks then do nothing until newer code is deployed, and lists without an index fail. It
# also refuses if the secret has been rotated, the API has been made public, or the deployment has moved to another
# database since then. Both revisions can read the dispatches that are waiting in the queues.
set -eo pipefail

# shellcheck source=lib/commands.sh
source "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/lib/commands.sh"

parse_options "$@"
[[ "$MODE" != check ]] || die "rollback.sh has no --check."
is_forced="" since=0
for option in "${EXTRA_OPTIONS[@]}"; do
  case "$option" in
    --force) is_forced=yes ;;
    --since=[0-9]*) since="${option#*=}" ;;
    *) die "Unknown option $option. See infra/rollback.sh --help." ;;
  esac
done
load_configuration "$CONFIG"
find_project_number
read_ledger || [[ "$MODE" == dry-run ]] || die "Nothing is deployed."

upgraded="$(get LEDGER upgraded.at)"
if ((since && since >= ${upgraded:-0})); then
  log "Nothing goes back: the last upgrade ended before that."
  exit
fi

[[ -z "$(get LEDGER moving)" ]] || require_no_move
[[ -z "$(get LEDGER previous.database)" ]] || die "The last upgrade moved from database $(get LEDGER previous.database) to \
$(get LEDGER database), and the revisions before would serve the old one. To go back to its data, set \
DATABASE=\"$(get LEDGER previous.database)\" and run infra/upgrade.sh, which moves everything at once."

# An interrupted upgrade leaves `serving` in the ledger, a completed one `previous`, both for the functions that it changed.
for entry in serving previous; do
  has_target=""
  for function in "${FUNCTIONS[@]}"; do
    put target "$function" "$(get LEDGER "$entry.$function")"
    [[ "$MODE" != dry-run ]] || put target "$function" "PREVIOUS-$function"
    [[ -z "$(get target "$function")" ]] || has_target=yes
  done
  [[ -z "$has_target" ]] || break
done
[[ -n "$has_target" ]] || die "There is no revision to go back to: nothing has been upgraded since the first \
deployment, the last rotation of the secret, or the change of the API to public. Check out the older code and run \
infra/upgrade.sh."
if [[ "$(get LEDGER previous.schema)" != "$(get LEDGER schema)" && -z "$is_forced" ]]; then
  [[ -z "$(get LEDGER previous.schema)" ]] || die "Documents have been written with schema version \
$(get LEDGER schema), which the previous code (version $(get LEDGER previous.schema)) refuses to read. Fix \
the problem with a new upgrade, or use --force."
fi

[[ "$(get LEDGER retired)" != yes || -n "$is_forced" ]] || die "The indexes that only the previous code \
needs have been removed since the upgrade. Check out that code, run infra/deploy.sh --step=indexes, wait until they are \
ready (infra/deploy.sh --check --step=functions), and run infra/rollback.sh --force."

[[ -z "$(get LEDGER trust.api)" ]] || record "trust.api=yes"
# A move to another database that had only put up its fence is given up.
[[ -z "$(get LEDGER fenced)" ]] || lift_fence back
# The functions that send dispatches first, the one that receives them last.
cleared=()
for function in "${SENDERS_FIRST[@]}"; do
  if [[ -z "$(get target "$function")" ]]; then
    log "$NAME-$function stays as it is: the upgrade did not change it."
    continue
  fi
  shift_traffic "$function" "$(require target "$function")=100"
  cleared+=("digest.$function=rolled-back" "serving.$function=none")
  cleared+=("image.$function=$(get_image "$(get target "$function")")")
done
# The serving revisions no longer match the digests in the ledger. Clear them, so that the next upgrade deploys even if
# the code and settings have not changed.
record "${cleared[@]}"
if is_smoke_account_accepted; then
  run_smoke_test
  revoke_smoke_access
else
  log "These revisions do not accept $SMOKE_ACCOUNT, so the smoke test was skipped."
fi
