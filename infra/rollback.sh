#!/usr/bin/env bash
# Send all requests to the revisions of before the last upgrade; it takes seconds, and builds nothing.
#
# Usage: infra/rollback.sh [--dry-run] [--config=FILE] [--force]
#
# Refused if documents were written since that the old code cannot read (--force does it all the same: those tasks then
# stand still until newer code is back), and if the secret was rotated or the api opened to the public since. Dispatches that wait in the queues are
# read by both revisions.
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
[[ "$MODE" != check ]] || die "A rollback has nothing to check."
[[ "${REST[*]}" =~ ^(--force)?$ ]] || die "What is ${REST[*]}? See infra/rollback.sh --help."
configure "$CONFIG"
find_project
read_ledger || [[ "$MODE" == dry-run ]] || die "Nothing is deployed."

declare -A target=()
for function in "${FUNCTIONS[@]}"; do
  # An upgrade that died midway has left `serving`, one that ended `previous`.
  target[$function]="$(ledger "serving.$function")"
  target[$function]="${target[$function]:-$(ledger "previous.$function")}"
  [[ "$MODE" != dry-run ]] || target[$function]="PREVIOUS-$function"
  [[ -n "${target[$function]}" ]] || die "There is no revision to go back to: nothing was upgraded since the first \
deployment, the last rotation of the secret or the opening of the api to the public. Check out the older code and run infra/upgrade.sh."
done
if [[ "$(ledger previous.schema)" != "$(ledger schema)" && "${REST[*]}" != --force ]]; then
  [[ -z "$(ledger previous.schema)" ]] || die "Documents were written in version $(ledger schema), which the code of before refuses to read (it knows \
$(ledger previous.schema)). Mend it forward, or use --force."
fi

[[ -z "$(ledger trust.api)" ]] || record "trust.api=yes"
# Those that send before the one that is sent to.
for function in api sweep execute; do
  shift_traffic "$function" "${target[$function]}=100"
done
# Nothing is served by what the ledger says was deployed: the next upgrade is one, whatever it brings.
record "digest.execute=rolled-back" "digest.sweep=rolled-back" "digest.api=rolled-back" \
  "serving.execute=none" "serving.sweep=none" "serving.api=none"
if knows_smoke; then
  smoke_test
else
  say "These revisions do not know $SMOKE_ACCOUNT, so no task was tried."
fi
