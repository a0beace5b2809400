#!/usr/bin/env bash
# Accept a release, once and for real: deploy into an empty project, try what only Google Cloud can show, remove it all,
# and write a report to be committed.
#
# Usage: infra/accept.sh PROJECT [--report=FILE] [--region=REGION] [--dry-run]
#
#   --report=FILE  where the report goes; docs/explanation/acceptance.md if not given
#   --dry-run      print what each step would run
#
# It takes about an hour and costs less than a dollar. It needs an Owner of a project that has no cloudsched, with billing,
# and refuses any other. If a step fails, the report says which; what was made is left there for you to look at, and
# `infra/teardown.sh --yes --with-data --config=build/acceptance.sh` removes it.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=lib/commands.sh
source "$here/lib/commands.sh"
# shellcheck source=lib/configuration.sh
source "$here/lib/configuration.sh"
# shellcheck source=lib/ledger.sh
source "$here/lib/ledger.sh"
# shellcheck source=lib/project.sh
source "$here/lib/project.sh"
# shellcheck source=lib/database.sh
source "$here/lib/database.sh"
# shellcheck source=lib/web.sh
source "$here/lib/web.sh"
# shellcheck source=lib/access.sh
source "$here/lib/access.sh"
# shellcheck source=lib/source.sh
source "$here/lib/source.sh"
# shellcheck source=lib/smoke.sh
source "$here/lib/smoke.sh"
# shellcheck source=lib/quota.sh
source "$here/lib/quota.sh"
# shellcheck source=lib/functions.sh
source "$here/lib/functions.sh"
# shellcheck source=lib/acceptance.sh
source "$here/lib/acceptance.sh"

parse_options "$@"
[[ "$MODE" != check ]] || die "accept.sh has no --check."
project="" region="us-central1" report="$INFRA/../docs/explanation/acceptance.md"
for option in "${EXTRA_OPTIONS[@]}"; do
  case "$option" in
    --report=*) report="${option#*=}" ;;
    --region=*) region="${option#*=}" ;;
    --*) die "Unknown option $option. See infra/accept.sh --help." ;;
    *)
      [[ -z "$project" ]] || die "Name one project."
      project="$option"
      ;;
  esac
done
[[ -n "$project" ]] || die "Name the empty project: infra/accept.sh PROJECT."
CONFIG="$INFRA/../build/acceptance.sh"
mkdir -p "$(dirname "$CONFIG")"
write_configuration "$project" "$region"
load_configuration "$CONFIG"
find_project_number
find_api_keys_version

STEPS=(empty deploy reminder hop rollback rotation purge restore teardown)
begin_report "$report"
for step in "${STEPS[@]}"; do
  run_step "$step"
done
end_report
log "" "Accepted. Commit the report: $report"
