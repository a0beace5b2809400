#!/usr/bin/env bash
# Set up cloudsched in a Google Cloud project, or bring what is there into line with the configuration.
#
# Usage: infra/deploy.sh [--dry-run | --check] [--config=FILE] [--step=NAME]
#
#   --dry-run      print every command for an empty project, and run none
#   --check        say what differs, and change nothing; 1 if something does
#   --config=FILE  the configuration; infra/config.sh if not given
#   --step=NAME    one step alone: services secret accounts database indexes rules queues roles functions sweep smoke
#
# It may be run any number of times, and goes on where a run that died has stopped.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=lib/running.sh
source "$here/lib/running.sh"
# shellcheck source=lib/configuration.sh
source "$here/lib/configuration.sh"
# shellcheck source=lib/ledger.sh
source "$here/lib/ledger.sh"
# shellcheck source=lib/project.sh
source "$here/lib/project.sh"
# shellcheck source=lib/web.sh
source "$here/lib/web.sh"
# shellcheck source=lib/access.sh
source "$here/lib/access.sh"
# shellcheck source=lib/functions.sh
source "$here/lib/functions.sh"

only=""
options "$@"
for option in "${REST[@]}"; do
  case "$option" in
    --step=*) only="${option#*=}" ;;
    *) die "What is $option? See infra/deploy.sh --help." ;;
  esac
done
configure "$CONFIG"

roles() {
  bind_project_roles
  bind_resource_roles
}
functions() {
  close_api
  deploy_functions
  bind_invokers
}
declare -A run=(
  [services]=enable_services [secret]=create_secret [accounts]=create_accounts [database]=create_database
  [indexes]=create_indexes [rules]=release_rules [queues]=create_queues [roles]=roles [functions]=functions
  [sweep]=create_sweep_job [smoke]=smoke_test
)
order=(services secret accounts database indexes rules queues roles functions sweep smoke)

[[ -z "$only" || -n "${run[$only]-}" ]] || die "There is no step $only. The steps: ${order[*]}."
find_project
find_api_keys
if [[ -n "$only" ]]; then
  read_ledger || true
  "${run[$only]}"
else
  for name in "${order[@]}"; do
    # A deployment that nothing was done to has been proven by the run that made it; one that an upgrade is to change
    # will be proven by that, and may not know the smoke test's account before.
    [[ "$name" != smoke || ("$CHANGES" -gt 0 && ${#OUTDATED[@]} -eq 0) ]] || continue
    "${run[$name]}"
  done
fi

case "$MODE" in
  apply) say "" "Done: $CHANGES changes. The api is at $(service_url api)" ;;
  check)
    ((CHANGES == 0)) || exit 1
    say "" "Nothing differs."
    ;;
esac
