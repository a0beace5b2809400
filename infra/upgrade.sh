#!/usr/bin/env bash
# Bring new code or settings into a running deployment, step by step, and go back by itself if a task does not run.
#
# Usage: infra/upgrade.sh [--dry-run] [--config=FILE] [--force]
#
# The new revisions are made beside the old ones and get no request at first. Then 10, 50 and 100 in a hundred go to
# them, the executor before those that send to it; after each step a task has to run. Tasks that run meanwhile are safe
# whichever revision they meet: a dispatch says which task, revision and occurrence it is for, and the document decides.
#
# --force brings in code that writes older documents than those that are stored: it will refuse to read them.
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

options "$@"
[[ "$MODE" != check ]] || die "infra/deploy.sh --check says what an upgrade would change."
[[ "${REST[*]}" =~ ^(--force)?$ ]] || die "What is ${REST[*]}? See infra/upgrade.sh --help."
configure "$CONFIG"
find_project
read_ledger || [[ "$MODE" == dry-run ]] || die "Nothing is deployed. Run infra/deploy.sh."

find_api_keys
expect_closed

step "Schema"
old_schema="$(ledger schema)" new_schema="$(schema_version)"
old_schema="${old_schema:-$new_schema}"
shares=(10 50 100)
if ((new_schema < old_schema)) && [[ "${REST[*]}" != --force ]]; then
  die "This code reads documents up to version $new_schema, but version $old_schema is stored. Use newer code."
elif ((new_schema > old_schema)); then
  say "Documents will be written in version $new_schema, which the old code refuses to read: all requests move at once."
  shares=(100)
fi

step "Candidates"
declare -A old=() candidate=()
for function in "${FUNCTIONS[@]}"; do
  old[$function]="$(ledger "serving.$function")"
  [[ -n "${old[$function]}" ]] || old[$function]="$(serving_revision "$function" | tail -n 1)"
  [[ -n "${old[$function]}" ]] || die "The requests of $NAME-$function are split between revisions. Run infra/rollback.sh first."
done
record "serving.execute=${old[execute]}" "serving.sweep=${old[sweep]}" "serving.api=${old[api]}"

is_shifting=""
go_back() {
  trap - ERR
  if [[ -n "$is_shifting" ]] && ((new_schema > old_schema)); then
    die "The upgrade failed, and documents may have been written in version $new_schema, which the old code cannot read. \
Mend it and run infra/upgrade.sh again; infra/rollback.sh --force goes back all the same."
  fi
  say "The upgrade failed: going back to the revisions of before."
  for function in api sweep execute; do
    shift_traffic "$function" "${old[$function]}=100"
  done
  exit 1
}
[[ "$MODE" == dry-run ]] || trap go_back ERR
set -E

build_source
for function in "${FUNCTIONS[@]}"; do
  # Pinned first: a deployment does not move traffic that was assigned by hand.
  shift_traffic "$function" "${old[$function]}=100"
  deploy_function "$function"
  candidate[$function]="$(latest_revision "$function" | tail -n 1)"
  if [[ "${candidate[$function]}" == "${old[$function]}" ]]; then
    say "$NAME-$function has no new revision."
  fi
done
change "name the new api" gcloud run services update-traffic "$NAME-api" --region="$REGION" \
  --update-tags="candidate=${candidate[api]}" --project="$PROJECT" --quiet
act_as_smoke
web GET "$(service_url api candidate)/v1/tasks?pageSize=1"
[[ "$MODE" == dry-run || "$WEB_STATUS" == 200 ]] || {
  say "The new api answers $WEB_STATUS: $WEB_BODY"
  go_back
}

if ! knows_smoke; then
  say "What serves does not know $SMOKE_ACCOUNT, so no task could be tried there: all requests move at once."
  shares=(100)
fi

is_shifting=yes
record "schema=$new_schema" "previous.schema=$old_schema"
for share in "${shares[@]}"; do
  step "$share in a hundred"
  for function in "${FUNCTIONS[@]}"; do
    [[ "${candidate[$function]}" != "${old[$function]}" ]] || continue
    if ((share == 100)); then
      shift_traffic "$function" "${candidate[$function]}=100"
    else
      shift_traffic "$function" "${candidate[$function]}=$share,${old[$function]}=$((100 - share))"
    fi
  done
  # In a process of its own, whose end by `die` is seen here.
  (smoke_test) || go_back
done

# What is deployed next takes all requests again, and rollback.sh knows where to go.
for function in "${FUNCTIONS[@]}"; do
  change "let $NAME-$function follow its latest revision" gcloud run services update-traffic "$NAME-$function" \
    --region="$REGION" --to-latest --project="$PROJECT" --quiet
  record "digest.$function=$(digest_of "$function")" "previous.$function=${old[$function]}"
done
trust_after_upgrade
record "serving.execute=none" "serving.sweep=none" "serving.api=none" "trust.api=$TRUST_BECOMES"
say "" "Upgraded. infra/rollback.sh goes back."
[[ "$API_ACCESS" == private || "$(ledger open.api)" == yes ]] || say "The api is still private: infra/deploy.sh opens it."
