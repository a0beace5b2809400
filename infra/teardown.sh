#!/usr/bin/env bash
# Remove what deploy.sh has made, and nothing else. Without --yes it only says what that is.
#
# Usage: infra/teardown.sh [--yes] [--with-data] [--dry-run] [--config=FILE]
#
#   --yes         do it
#   --with-data   the Firestore database too, if deploy.sh made it: every task, execution and message is gone
#
# Services stay enabled, and a database that is kept keeps its indexes and rules. A queue's name cannot be used again
# for about a week: deploy again under another NAME until then.
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

is_sure="" with_data=""
options "$@"
for option in "${REST[@]}"; do
  case "$option" in
    --yes) is_sure=yes ;;
    --with-data) with_data=yes ;;
    *) die "What is $option? See infra/teardown.sh --help." ;;
  esac
done
configure "$CONFIG"
[[ "$MODE" == dry-run || -n "$is_sure" ]] || MODE="check"
read_ledger || [[ "$MODE" == dry-run ]] || die "There is no secret $SECRET, so nothing here is ours."

# remove WHAT LEDGER-KEY ASKING-COMMAND -- REMOVING-COMMAND
remove() {
  local what="$1" key="$2" asking=()
  shift 2
  while [[ "$1" != -- ]]; do
    asking+=("$1")
    shift
  done
  shift
  if [[ "$MODE" != dry-run ]]; then
    is_ours "$key" || return 0
    ask "${asking[@]}" >/dev/null || return 0
  fi
  change "remove $what" "$@"
}

# What calls goes before what is called, and what is called before what it stands on.
remove "the job $NAME-sweep" job \
  gcloud scheduler jobs describe "$NAME-sweep" --location="$REGION" --format="value(name)" --project="$PROJECT" --quiet -- \
  gcloud scheduler jobs delete "$NAME-sweep" --location="$REGION" --project="$PROJECT" --quiet
for function in api sweep execute; do
  remove "function $NAME-$function" "function.$function" \
    gcloud functions describe "$NAME-$function" --gen2 --region="$REGION" --format="value(state)" --project="$PROJECT" --quiet -- \
    gcloud functions delete "$NAME-$function" --gen2 --region="$REGION" --project="$PROJECT" --quiet
done
for priority in "${PRIORITIES[@]}"; do
  queue="$(queue_of "$priority")"
  remove "queue $queue, with the dispatches that wait in it" "queue.$queue" \
    gcloud tasks queues describe "$queue" --location="$REGION" --format="value(name)" --project="$PROJECT" --quiet -- \
    gcloud tasks queues delete "$queue" --location="$REGION" --project="$PROJECT" --quiet
done
# A binding of an account that is gone would stay in its resource's policy for ever.
# unbind ROLE ACCOUNT [--condition=…] -- the command group and its resource, as for `bind`
unbind() {
  local role="$1" member condition=() group=()
  member="serviceAccount:$(account "$2")"
  is_ours "account.$2" || [[ "$MODE" == dry-run ]] || return 0
  shift 2
  while [[ "$1" != -- ]]; do
    condition+=("$1")
    shift
  done
  shift
  while [[ "$1" != -- ]]; do
    group+=("$1")
    shift
  done
  shift
  holds "$member" "$role" "${group[@]}" get-iam-policy "$@" --project="$PROJECT" --quiet ||
    [[ "$MODE" == dry-run ]] || return 0
  change "take $role on $1 from $member" "${group[@]}" remove-iam-policy-binding "$@" --member="$member" \
    --role="$role" "${condition[@]}" --format=none --project="$PROJECT" --quiet
}
of_database="expression=resource.name==\"projects/$PROJECT/databases/$DATABASE\",title=$NAME-database"
for role in api executor; do
  unbind roles/datastore.user "$role" --condition="$of_database" -- gcloud projects -- "$PROJECT"
  [[ -z "$BUCKET" ]] || unbind roles/storage.objectUser "$role" -- gcloud storage buckets -- "gs://$BUCKET"
done
unbind roles/cloudbuild.builds.builder builder --condition=None -- gcloud projects -- "$PROJECT"
[[ -z "$API_KEYS_SECRET" ]] ||
  unbind roles/secretmanager.secretAccessor api -- gcloud secrets -- "$API_KEYS_SECRET"
for role in api executor invoker builder smoke; do
  remove "service account $(account "$role")" "account.$role" \
    gcloud iam service-accounts describe "$(account "$role")" --format="value(email)" --project="$PROJECT" --quiet -- \
    gcloud iam service-accounts delete "$(account "$role")" --project="$PROJECT" --quiet
done
if [[ -n "$with_data" ]]; then
  if is_ours rules && is_ours database && [[ "$MODE" == apply ]]; then
    release="projects/$PROJECT/releases/cloud.firestore"
    [[ "$DATABASE" == "(default)" ]] || release+="/$DATABASE"
    web DELETE "https://firebaserules.googleapis.com/v1/$release"
  fi
  remove "the protection of database $DATABASE" database \
    gcloud firestore databases describe --database="$DATABASE" --format="value(name)" --project="$PROJECT" --quiet -- \
    gcloud firestore databases update --database="$DATABASE" --no-delete-protection --project="$PROJECT" --quiet
  remove "database $DATABASE, with all tasks" database \
    gcloud firestore databases describe --database="$DATABASE" --format="value(name)" --project="$PROJECT" --quiet -- \
    gcloud firestore databases delete --database="$DATABASE" --project="$PROJECT" --quiet
fi
# Last of all, for it says what is ours. While a database of ours is kept, so is the knowledge that it is ours.
if [[ -n "$with_data" || "$MODE" == dry-run ]] || ! is_ours database; then
  remove "secret $SECRET" secret \
    gcloud secrets describe "$SECRET" --format="value(name)" --project="$PROJECT" --quiet -- \
    gcloud secrets delete "$SECRET" --project="$PROJECT" --quiet
else
  say "Database $DATABASE is kept, and secret $SECRET, which says that it is ours. --with-data removes both."
fi
[[ "$MODE" != check ]] || say "" "Nothing was removed. infra/teardown.sh --yes does it."
