#!/usr/bin/env bash
# Give the functions a new secret for dispatches, and lose none that waits.
#
# Usage: infra/rotate-secret.sh [--finish | --compromised] [--dry-run] [--config=FILE]
#
#   (nothing)       make a new secret and sign with it; what was signed with the old one is still accepted
#   --finish        31 days later: no longer accept the old one, and disable it
#   --compromised   with --finish: do it now. Dispatches that wait are refused, and sent again by the sweep when due
#
# At every instant each secret that some instance signs with is accepted by every instance of the executor: it learns
# the new one first, then it signs with it, and only then do the others. A run that died is resumed by running it again.
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
# shellcheck source=lib/access.sh
source "$here/lib/access.sh"
# shellcheck source=lib/functions.sh
source "$here/lib/functions.sh"

# A dispatch waits at most 30 days, and an instance that knows only the old secret may finish a request of 30 minutes.
LONGEST_WAIT=$((31 * 86400))

finish="" compromised=""
options "$@"
[[ "$MODE" != check ]] || die "A rotation has nothing to check."
for option in "${REST[@]}"; do
  case "$option" in
    --finish) finish=yes ;;
    --compromised) finish=yes compromised=yes ;;
    *) die "What is $option? See infra/rotate-secret.sh --help." ;;
  esac
done
configure "$CONFIG"
read_ledger || [[ "$MODE" == dry-run ]] || die "Nothing is deployed. Run infra/deploy.sh."
current="$(ledger secret.current)" previous="$(ledger secret.previous)" next="$(ledger secret.next)"
if [[ "$MODE" == dry-run ]]; then
  current="${current:-1}" previous="${previous:-${finish:+0}}"
fi
[[ "$(ledger digest.execute)" != rolled-back ]] ||
  die "The functions were rolled back, and a new revision would be made from what was rolled back. Run infra/upgrade.sh first."
[[ -z "$(ledger serving.execute)" ]] || die "An upgrade is under way. End it with infra/upgrade.sh or infra/rollback.sh."

# give FUNCTION CURRENT [ALSO-ACCEPTED]: a new revision of the same code; it serves all requests when this returns.
give() {
  local secrets="CLOUDSCHED_SECRET=$SECRET:$2"
  [[ -z "${3-}" ]] || secrets+=",CLOUDSCHED_PREVIOUS_SECRET=$SECRET:$3"
  change "let $NAME-$1 sign with version $2${3:+ and accept version $3}" \
    gcloud run services update "$NAME-$1" --region="$REGION" --update-secrets="$secrets" --project="$PROJECT" --quiet
}

if [[ -n "$finish" ]]; then
  [[ -n "$previous" ]] || die "There is no old secret to give up."
  [[ -z "$next" ]] || die "A rotation is under way. Run infra/rotate-secret.sh to end it."
  rotated="$(ledger secret.rotated)"
  left=$((${rotated:-0} + LONGEST_WAIT - $(date +%s)))
  [[ -n "$compromised" ]] || ((left <= 0)) || die "Dispatches that were signed with the old secret may still wait. \
Come back in $(((left + 86399) / 86400)) days."
  change "let $NAME-execute accept version $current alone" gcloud run services update "$NAME-execute" \
    --region="$REGION" --remove-secrets=CLOUDSCHED_PREVIOUS_SECRET --project="$PROJECT" --quiet
  change "disable version $previous" gcloud secrets versions disable "$previous" --secret="$SECRET" \
    --project="$PROJECT" --quiet
  record "secret.previous=none"
  say "Destroy it when you are sure: gcloud secrets versions destroy $previous --secret=$SECRET --project=$PROJECT"
  exit
fi

[[ -z "$previous" ]] || die "The last rotation is not finished, and a third secret would be one too many: run \
infra/rotate-secret.sh --finish (or --compromised) first."
if [[ -z "$next" ]]; then
  add_secret_version
  next="${NEW_VERSION:-2}"
  record "secret.next=$next"
fi
# The revisions of before do not know the new secret: there is no way back to them.
record "previous.execute=none" "previous.sweep=none" "previous.api=none"
give execute "$current" "$next"
give execute "$next" "$current"
give sweep "$next"
give api "$next"
record "secret.current=$next" "secret.previous=$current" "secret.next=none" "secret.rotated=$(date +%s)"
say "" "Rotated. Run infra/rotate-secret.sh --finish in 31 days."
