#!/usr/bin/env bash
# Roll out new code or settings to a running deployment step by step, and roll back automatically if the smoke test
# fails. Only functions whose code or settings differ from what is deployed get a new revision.
#
# Usage: infra/upgrade.sh [--dry-run] [--config=FILE] [--force] [--unchecked]
#
# First `cloudsched check` compares the deployed tasks and their open runs with the code here, and nothing is changed if
# any would fail. It needs cloudsched and your handlers' requirements: pip install them, and set PYTHON to the interpreter
# that has them. --unchecked leaves it out.
#
# The new revisions are deployed beside the old ones and receive no requests at first. Then they get 10, 50 and 100 % of
# the requests, the executor before the functions that send to it, with a smoke test after each step. Tasks that run
# during an upgrade are safe on either revision: a dispatch names its task, revision and occurrence, and the stored
# document decides what runs.
#
# With another DATABASE than the one in use, such as a restored backup, nothing is moved step by step: once the new
# revisions have answered from it, no function may use the old one any more, and then all move at once.
#
# --force deploys code whose schema version is older than that of the stored documents; it will refuse to read them.
set -eo pipefail

# shellcheck source=lib/commands.sh
source "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/lib/commands.sh"

parse_options "$@"
[[ "$MODE" != check ]] || die "upgrade.sh has no --check. infra/deploy.sh --check lists what an upgrade would change."
is_forced="" is_unchecked=""
for option in "${EXTRA_OPTIONS[@]}"; do
  case "$option" in
    --force) is_forced=yes ;;
    --unchecked) is_unchecked=yes ;;
    *) die "Unknown option $option. See infra/upgrade.sh --help." ;;
  esac
done
load_configuration "$CONFIG"
find_project_number
read_ledger || [[ "$MODE" == dry-run ]] || die "Nothing is deployed. Run infra/deploy.sh."

deployed_database="$(get_deployed_database)"
is_moving=""
[[ -z "$deployed_database" || "$deployed_database" == "$DATABASE" ]] || is_moving=yes
if [[ -n "$(get LEDGER moving)" ]]; then
  [[ "$(get LEDGER moving)" == "$DATABASE" ]] || require_no_move
elif [[ -n "$(get LEDGER fenced)" && "$(get LEDGER fenced)" != "$deployed_database" ]]; then
  lift_fence # a completed move was interrupted before its queues went on
elif [[ -n "$(get LEDGER fenced)" && -z "$is_moving" ]]; then
  lift_fence back # a move is given up before anything has moved
fi

require_shards
require_quota
find_secret_versions

changed=() # the functions that get a new revision
for function in "${FUNCTIONS[@]}"; do
  [[ "$MODE" == dry-run || -n "$(get LEDGER "digest.$function")" ]] ||
    die "$NAME-$function is not deployed yet. Run infra/deploy.sh, which creates it, and then this script again."
  if [[ -n "$is_moving" ]] || is_outdated "$function"; then
    changed+=("$function")
  else
    log "$NAME-$function has this code and these settings already, and stays as it is."
  fi
done
if ((${#changed[@]} == 0)); then
  log "" "Nothing was upgraded: no function's code or settings differ from what is deployed."
  exit
fi
require_closed_api

log_step "Schema"
old_schema="$(get LEDGER schema)" new_schema="$(get_schema_version)"
old_schema="${old_schema:-$new_schema}"
shares=(10 50 100)
if ((new_schema < old_schema)) && [[ -z "$is_forced" ]]; then
  die "This code reads documents up to schema version $new_schema, but version $old_schema is stored. Deploy newer code."
elif ((new_schema > old_schema)); then
  log "The new code writes schema version $new_schema, which the old code refuses to read. All requests move at once."
  shares=(100)
fi

[[ -n "$is_unchecked" ]] || compare_stored_work "$is_moving"

if [[ -n "$is_moving" ]]; then
  shares=(100)
  prepare_database "$deployed_database"
fi
create_indexes
grant_secret_roles

log_step "Candidates"
for function in "${changed[@]}"; do
  revision="$(get LEDGER "serving.$function")"
  [[ -n "$revision" ]] || revision="$(get_serving_revision "$function")"
  [[ -n "$revision" ]] ||
    die "Requests to $NAME-$function are split between revisions. Run infra/rollback.sh first."
  put old "$function" "$revision"
done
serving=() ended=()
for function in "${changed[@]}"; do
  serving+=("serving.$function=$(require old "$function")")
  ended+=("serving.$function=none")
done
record "${serving[@]}" ${deployed_database:+"database=$deployed_database"}

is_shifting=""
roll_back() {
  trap - ERR
  [[ -z "$(get LEDGER moving)" ]] || die "The upgrade failed after functions had begun to move to database $DATABASE. Nothing \
uses the old one, and the queues are paused. Fix the problem and run infra/upgrade.sh again."
  if [[ -n "$is_shifting" ]] && ((new_schema > old_schema)); then
    die "The upgrade failed, and documents may have been written with schema version $new_schema, which the old code \
cannot read. Fix the problem and run infra/upgrade.sh again, or go back anyway with infra/rollback.sh --force."
  fi
  log "The upgrade failed. Going back to the previous revisions."
  [[ -z "$(get LEDGER fenced)" ]] || lift_fence back
  for function in "${SENDERS_FIRST[@]}"; do
    [[ -n "$(get old "$function")" ]] || continue # it has not changed
    shift_traffic "$function" "$(require old "$function")=100"
  done
  die "The previous revisions have all requests again. Fix the problem above and run infra/upgrade.sh again, or \
infra/rollback.sh to leave it at that."
}
[[ "$MODE" == dry-run ]] || trap roll_back ERR
set -E

build_source
for function in "${changed[@]}"; do
  # Pin the traffic first, so that deploying a new revision does not move any of it. In a move that goes on, it is pinned.
  [[ -n "$(get LEDGER moving)" ]] || shift_traffic "$function" "$(require old "$function")=100"
  deploy_function "$function"
  revision="$(get_latest_revision "$function")"
  put candidate "$function" "$revision"
  if [[ "$revision" == "$(get old "$function")" ]]; then
    log "$NAME-$function has no new revision."
  fi
done
wait_for_indexes
for function in api links; do
  [[ -n "$(get candidate "$function")" ]] || continue
  change "tag the new revision of $NAME-$function" gcloud run services update-traffic "$NAME-$function" --region="$REGION" \
    --update-tags="candidate=$(get candidate "$function")"
done
[[ -z "$(get candidate links)" ]] || test_links candidate || roll_back
grant_smoke_access
if [[ -n "$(get candidate api)" ]] && ! is_reached_directly; then
  log "Through the load balancer only the serving revisions are reached: the new API is first tried with 10 % of the requests."
elif [[ -n "$(get candidate api)" ]]; then
  request_when_allowed GET "$(require SERVICE_URLS candidate.api)/v1/tasks?pageSize=1"
  # The roles on another database were granted a moment ago.
  for ((waited = 0; waited < IAM_PROPAGATION_SECONDS; waited += 15)); do
    [[ -n "$is_moving" && "$MODE" == apply && "$RESPONSE_STATUS" == 5?? ]] || break
    sleep 15
    request GET "$(require SERVICE_URLS candidate.api)/v1/tasks?pageSize=1"
  done
  [[ "$MODE" == dry-run || "$RESPONSE_STATUS" == 200 ]] || {
    log "The new API answered $RESPONSE_STATUS: $RESPONSE_BODY"
    roll_back
  }
fi

if [[ -z "$is_moving" ]] && ! is_smoke_account_accepted; then
  log "The serving API does not accept $SMOKE_ACCOUNT, so requests cannot be moved step by step: all move at once."
  shares=(100)
fi

[[ -z "$is_moving" ]] || fence_database "$deployed_database"
is_shifting=yes
record "schema=$new_schema" "previous.schema=$old_schema" ${is_moving:+"moving=$DATABASE"}
for share in "${shares[@]}"; do
  log_step "Traffic: $share %"
  for function in "${changed[@]}"; do
    [[ "$(get candidate "$function")" != "$(get old "$function")" ]] || continue
    if ((share == 100)); then
      shift_traffic "$function" "$(require candidate "$function")=100"
    else
      shift_traffic "$function" "$(require candidate "$function")=$share,$(require old "$function")=$((100 - share))"
    fi
  done
  if [[ -n "$is_moving" ]]; then
    trap - ERR
    moved=("database=$DATABASE" "moving=none" "previous.database=$deployed_database")
    for function in "${FUNCTIONS[@]}"; do
      moved+=("serving.$function=$(require candidate "$function")" "previous.$function=none")
    done
    record "${moved[@]}"
    lift_fence
    { test_links && (run_smoke_test); } || die "Everything serves database $DATABASE now, but its smoke test failed. Fix the \
problem and run infra/upgrade.sh again, or go back to the old data: set DATABASE=\"$deployed_database\" and run it."
    break
  fi
  # In a subshell, so that `die` ends only the smoke test and the upgrade can be rolled back.
  { test_links && (run_smoke_test); } || roll_back
done

# Unpin the traffic, and record for rollback.sh which revisions served before: it leaves alone what has not changed.
for function in "${FUNCTIONS[@]}"; do
  revision="$(get candidate "$function")"
  [[ -n "$revision" ]] || { record "previous.$function=none" && continue; }
  change "send $NAME-$function to its latest revision" gcloud run services update-traffic "$NAME-$function" \
    --region="$REGION" --to-latest
  set_digest "$function"
  [[ -z "$is_moving" ]] || put old "$function" none
  record "digest.$function=$DIGEST" "previous.$function=$(require old "$function")" "image.$function=$(get_image "$revision")"
done
set_trust_after_upgrade
[[ -n "$is_moving" ]] || record "previous.database=none"
record "${ended[@]}" "retired=none" "upgraded.at=$(date +%s)" "trust.api=$TRUST_AFTER_UPGRADE" "database=$DATABASE"
revoke_smoke_access
if [[ -n "$is_moving" ]]; then
  log "" "Moved to database $DATABASE. Run infra/deploy.sh, which looks at everything else. Database $deployed_database is" \
    "still there; nothing uses it."
else
  log "" "Upgraded. Run infra/rollback.sh to go back."
fi
[[ "$API_ACCESS" == private || "$(get LEDGER open.api)" == yes ]] ||
  log "The API is still private. Run infra/deploy.sh to make it public."
