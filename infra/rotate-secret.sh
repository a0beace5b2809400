#!/usr/bin/env bash
# Rotate the secret that signs dispatches, without losing any dispatch that is waiting in a queue.
#
# Usage: infra/rotate-secret.sh [--finish | --compromised] [--dry-run] [--config=FILE]
#
#   (no option)     create a new secret and sign with it; dispatches signed with the old one are still accepted
#   --finish        31 days later: stop accepting the old secret, and disable it
#   --compromised   like --finish, but now. Waiting dispatches are refused; the sweep sends them again when they are due
#
# At every moment, every instance of the executor accepts every secret that any instance signs with: first the executor
# accepts the new secret, then it signs with it, then the other functions do. Run the script again to resume an
# interrupted rotation. The function for links does not have the secret: what people were sent stays valid.
set -eo pipefail

# shellcheck source=lib/commands.sh
source "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/lib/commands.sh"

# A dispatch waits at most 30 days, and an instance with the old secret may still be serving a 30-minute request.
MAX_DISPATCH_WAIT=$((31 * 86400))

finish="" compromised=""
parse_options "$@"
[[ "$MODE" != check ]] || die "rotate-secret.sh has no --check."
for option in "${EXTRA_OPTIONS[@]}"; do
  case "$option" in
    --finish) finish=yes ;;
    --compromised) finish=yes compromised=yes ;;
    *) die "Unknown option $option. See infra/rotate-secret.sh --help." ;;
  esac
done
load_configuration "$CONFIG"
read_ledger || [[ "$MODE" == dry-run ]] || die "Nothing is deployed. Run infra/deploy.sh."
require_no_move
current="$(get LEDGER secret.current)"
previous="$(get LEDGER secret.previous)"
next="$(get LEDGER secret.next)"
if [[ "$MODE" == dry-run ]]; then
  current="${current:-1}" previous="${previous:-${finish:+0}}"
fi
for function in "${FUNCTIONS[@]}"; do
  [[ "$(get LEDGER "digest.$function")" != rolled-back ]] ||
    die "$NAME-$function was rolled back, and a rotation would deploy the code that you rolled back. Run infra/upgrade.sh first."
  [[ -z "$(get LEDGER "serving.$function")" ]] ||
    die "An upgrade is in progress. Complete it with infra/upgrade.sh or undo it with infra/rollback.sh."
done

# update_secrets FUNCTION CURRENT [ALSO-ACCEPTED]: create a revision of the same code with other secrets. When this
# returns, it serves all requests.
update_secrets() {
  local secrets="CLOUDSCHED_SECRET=$SECRET:$2"
  [[ -z "${3-}" ]] || secrets+=",CLOUDSCHED_PREVIOUS_SECRET=$SECRET:$3"
  change "make $NAME-$1 sign with version $2${3:+ and also accept version $3}" \
    gcloud run services update "$NAME-$1" --region="$REGION" --update-secrets="$secrets"
}

if [[ -n "$finish" ]]; then
  [[ -n "$previous" ]] || die "There is no old secret to disable."
  [[ -z "$next" ]] || die "A rotation is in progress. Run infra/rotate-secret.sh to complete it."
  rotated="$(get LEDGER secret.rotated)"
  remaining=$((${rotated:-0} + MAX_DISPATCH_WAIT - $(date +%s)))
  [[ -n "$compromised" ]] || ((remaining <= 0)) || die "Dispatches signed with the old secret may still be waiting. \
Try again in $(((remaining + 86399) / 86400)) days."
  change "make $NAME-execute accept only version $current" gcloud run services update "$NAME-execute" \
    --region="$REGION" --remove-secrets=CLOUDSCHED_PREVIOUS_SECRET
  change "disable version $previous" gcloud secrets versions disable "$previous" --secret="$SECRET"
  record "secret.previous=none"
  log "When you no longer need the old version, destroy it:" \
    "gcloud secrets versions destroy $previous --secret=$SECRET --project=$PROJECT"
  exit
fi

[[ -z "$previous" ]] || die "The last rotation is not finished, and the executor can accept only two secrets. Run \
infra/rotate-secret.sh --finish (or --compromised) first."
if [[ -z "$next" ]]; then
  add_secret_version
  next="${NEW_VERSION:-2}"
  record "secret.next=$next"
fi
# The earlier revisions do not have the new secret, so a rollback to them is no longer possible.
record "previous.execute=none" "previous.sweep=none" "previous.api=none" "previous.links=none"
update_secrets execute "$current" "$next"
update_secrets execute "$next" "$current"
update_secrets sweep "$next"
update_secrets api "$next"
record "secret.current=$next" "secret.previous=$current" "secret.next=none" "secret.rotated=$(date +%s)"
log "" "Rotated. Run infra/rotate-secret.sh --finish in 31 days."
