#!/usr/bin/env bash
# Deploy cloudsched to a Google Cloud project, or bring an existing deployment in line with the configuration.
#
# Usage: infra/deploy.sh [--dry-run | --check] [--config=FILE] [--step=NAME] [--take-over]
#
#   --dry-run      print every command that an empty project needs, and run none but to look for your SECRETS
#   --check        list what differs from the configuration and change nothing; exit with 1 if anything does, and
#                  with 2 if that cannot be said
#   --config=FILE  read the configuration from FILE instead of infra/config.sh
#   --take-over    go on although another run has not ended: it was killed, on another machine
#   --step=NAME    run one step: policies services quota secret accounts database indexes rules queues roles logs
#                  functions sweep monitoring smoke apply, or one of two that no other run does: shards, which raises the
#                  number of shards to SHARDS, and settings, which prints the variables for a backend of your own
#
# You can run it any number of times. It continues where an interrupted run stopped.
set -eo pipefail

# shellcheck source=lib/commands.sh
source "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/lib/commands.sh"

selected_step=""
parse_options "$@"
for option in "${EXTRA_OPTIONS[@]}"; do
  case "$option" in
    --step=*) selected_step="${option#*=}" ;;
    *) die "Unknown option $option. See infra/deploy.sh --help." ;;
  esac
done
load_configuration "$CONFIG"

grant_roles() {
  grant_project_roles
  grant_resource_roles
}
deploy_and_expose_functions() {
  close_api
  wait_for_indexes
  deploy_functions
  grant_invoker_roles
}
steps=( # in their order, each with its function
  policies=require_policies services=enable_services quota=require_quota secret=create_secret accounts=create_accounts database=create_database
  indexes=create_indexes rules=release_rules queues=create_queues roles=grant_roles logs=exclude_feeds_from_logs
  functions=deploy_and_expose_functions sweep=create_sweep_job monitoring=create_monitoring smoke=run_smoke_test
  apply=apply_schedules
)
selected_function=""
for step in "${steps[@]}" shards=use_shards settings=print_settings; do
  [[ "${step%=*}" != "$selected_step" ]] || selected_function="${step#*=}"
done

[[ -z "$selected_step" || -n "$selected_function" ]] ||
  die "There is no step named $selected_step. The steps are: ${steps[*]%=*}."
log "Project $PROJECT, deployment $NAME: functions, queues and sweep in $REGION, database ${DATABASE:-of its own}\
${FIRESTORE_LOCATION:+ in $FIRESTORE_LOCATION}."
find_project_number
find_secret_versions
if [[ -n "$selected_step" ]]; then
  read_ledger || true
  [[ ! "$selected_step" =~ ^(indexes|rules)$ ]] || require_own_database
  "$selected_function"
else
  ! read_ledger || [[ "$MODE" == dry-run ]] || require_no_move
  require_own_database
  [[ "$MODE" == check ]] || require_smoke_handler
  for step in "${steps[@]}"; do
    # If nothing changed, an earlier run has already passed the smoke test. If functions are outdated, upgrade.sh runs
    # the smoke test; until then the deployed API may not accept the smoke test's account.
    if [[ "${step%=*}" == smoke ]] && { [[ "$MODE" == check ]] || ((CHANGES == 0 || ${#OUTDATED[@]} > 0)); }; then
      revoke_leftover_smoke_access
      continue
    fi
    "${step#*=}"
  done
fi

revoke_smoke_access
[[ "$MODE" == dry-run ]] || warn_of_silence
case "$MODE" in
  dry-run)
    log "" "$CHANGES changes. Nobody has measured yet how long they take on Google Cloud, or what a first run costs" \
      "(docs/run/deploy.md). docs/run/costs.md has the running costs."
    ;;
  apply) log "" "Done: $CHANGES changes. The API is at $(require SERVICE_URLS api)" ;;
  check)
    ((CHANGES == 0)) || exit 1
    log "" "Nothing differs."
    ;;
esac
