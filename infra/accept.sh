#!/usr/bin/env bash
# Accept a release for real: deploy it beside whatever the project has, try what only Google Cloud can show, remove it all,
# and write a report that can be pasted into an issue.
#
# Usage: infra/accept.sh PROJECT [--config=FILE] [--name=NAME] [--region=REGION] [--report=FILE] [--dry-run]
#
#   --config=FILE    settings to try it with, such as a smaller quota's or an organisation's; PROJECT may be in it
#   --name=NAME      prefix of all names; accept-MMDDHHMM if not given, so that it can be repeated in one project
#   --report=FILE    where the report goes; build/acceptance.md if not given
#   --dry-run        print what each step would run
#
# Nobody knows yet how long it takes and what it costs: its report says the first, the billing report of that day the second.
# It needs an Owner of a project with billing, makes two databases of its own, and refuses a NAME that is in use. If a step
# fails, the report says which; what was made is left there for you to look at, and the command that removes it is at the end
# of the report. docs/run/deploy.md is a page for whoever runs this.
set -eo pipefail

# shellcheck source=lib/commands.sh
source "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/lib/commands.sh"

# shellcheck disable=SC2034 # `take_lock` reads it
CONFIG="" LOCK=none # the scripts that this one runs take the lock, each its own
parse_options "$@"
[[ "$MODE" != check ]] || die "accept.sh has no --check."
project="" region="" name="" report="$INFRA/../build/acceptance.md"
for option in "${EXTRA_OPTIONS[@]}"; do
  case "$option" in
    --report=*) report="${option#*=}" ;;
    --region=*) region="${option#*=}" ;;
    --name=*) name="${option#*=}" ;;
    --*) die "Unknown option $option. See infra/accept.sh --help." ;;
    *)
      [[ -z "$project" ]] || die "Name one project."
      project="$option"
      ;;
  esac
done
if [[ -n "$CONFIG" ]]; then
  [[ -f "$CONFIG" ]] || die "$CONFIG does not exist."
  GIVEN="$(cd "$(dirname "$CONFIG")" && pwd)/$(basename "$CONFIG")"
  # shellcheck source=config.example.sh disable=SC2153
  [[ -n "$project" ]] || project="$(source "$INFRA/config.example.sh" && source "$GIVEN" && printf '%s' "$PROJECT")"
  # shellcheck source=config.example.sh disable=SC2153
  [[ -n "$region" ]] || region="$(source "$INFRA/config.example.sh" && source "$GIVEN" && printf '%s' "$REGION")"
fi
[[ -n "$project" ]] || die "Name the project: infra/accept.sh PROJECT."
name="${name:-accept-$(date -u +%m%d%H%M)}"
CONFIG="$INFRA/../build/acceptance.sh"
mkdir -p "$(dirname "$CONFIG")"
write_configuration "$project" "${region:-us-central1}" "$name" "$name"
load_configuration "$CONFIG"
find_project_number
find_secret_versions

STEPS=(unused deploy doctor reminder hop rollback rotation purge restore teardown)
begin_report "$report"
for step in "${STEPS[@]}"; do
  run_step "$step"
done
end_report
log "" "Accepted. Please paste this report into an issue: $report"
