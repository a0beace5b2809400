#!/usr/bin/env bash
# Remove what deploy.sh created, and nothing else. Without --yes, only list what would be removed.
#
# Usage: infra/teardown.sh [--yes] [--with-data] [--dry-run] [--config=FILE]
#
#   --yes         remove it
#   --with-data   also delete the Firestore database, if deploy.sh created it, with every task, execution and message
#
# Services stay enabled, and a database that is kept keeps its indexes and rules. Cloud Tasks does not accept the name
# of a deleted queue for three to seven days: until then, deploy under another NAME.
set -eo pipefail

# shellcheck source=lib/commands.sh
source "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/lib/commands.sh"

is_confirmed="" with_data=""
parse_options "$@"
for option in "${EXTRA_OPTIONS[@]}"; do
  case "$option" in
    --yes) is_confirmed=yes ;;
    --with-data) with_data=yes ;;
    *) die "Unknown option $option. See infra/teardown.sh --help." ;;
  esac
done
load_configuration "$CONFIG"
[[ "$MODE" == dry-run || -n "$is_confirmed" ]] || MODE="check"
read_ledger || [[ "$MODE" == dry-run ]] || die "There is no secret $SECRET, so there is nothing that deploy.sh created."

# Print the IDs of all collections of the deployment, joined by commas.
list_collections() {
  read_resources 'print(",".join(sys.argv[3] + each for each in table["collections"] + table["subcollections"]))' \
    "$COLLECTION_PREFIX"
}

# remove WHAT LEDGER-KEY DESCRIBE-COMMAND -- DELETE-COMMAND
remove() {
  local what="$1" key="$2" describe=()
  shift 2
  while [[ "$1" != -- ]]; do
    describe+=("$1")
    shift
  done
  shift
  if [[ "$MODE" != dry-run ]]; then
    is_managed "$key" || return 0
    query "${describe[@]}" >/dev/null || return 0
  fi
  change "remove $what" "$@"
}

remove_monitoring # first, so that nobody is paged because of the removal
# Callers are removed before what they call, and services before the resources they depend on.
remove "the job $NAME-sweep" job \
  gcloud scheduler jobs describe "$NAME-sweep" --location="$REGION" --format="value(name)" -- \
  gcloud scheduler jobs delete "$NAME-sweep" --location="$REGION"
# The function for links goes, too, if the configuration does not want it any more.
if [[ "$PUBLIC_LINKS" == no ]] && is_managed account.links; then
  SENDERS_FIRST=(links "${SENDERS_FIRST[@]}") STORE_ACCOUNTS+=(links)
fi
for function in "${SENDERS_FIRST[@]}"; do
  remove "function $NAME-$function" "function.$function" \
    gcloud run services describe "$NAME-$function" --region="$REGION" --format="value(metadata.name)" -- \
    gcloud run services delete "$NAME-$function" --region="$REGION"
done
remove "repository $NAME, with the functions' images" repository \
  gcloud artifacts repositories describe "$NAME" --location="$REGION" --format="value(name)" -- \
  gcloud artifacts repositories delete "$NAME" --location="$REGION"
include_feeds_in_logs
names=()
for priority in "${QUEUES[@]}"; do
  is_further_queue "$priority" || names+=("$(require QUEUE_NAMES "$priority")")
done
for priority in "${PRIORITIES[@]}"; do # QUEUES_PER_PRIORITY may have been greater
  made="$(get_further_queues "$priority")"
  for ((number = 2; number <= made; number++)); do
    names+=("$(require QUEUE_NAMES "$priority")-q$number")
    # shellcheck disable=SC2034 # `is_managed` reads it
    put LEDGER "created.queue.$(require QUEUE_NAMES "$priority")-q$number" yes
  done
done
for queue in "${names[@]}"; do
  remove "queue $queue, with its waiting dispatches" "queue.$queue" \
    gcloud tasks queues describe "$queue" --location="$REGION" --format="value(name)" -- \
    gcloud tasks queues delete "$queue" --location="$REGION"
done
# A deleted account's bindings would stay in the resources' policies for ever, so they are removed first.
# revoke_role ROLE ACCOUNT [--condition=…] -- COMMAND-GROUP -- RESOURCE-AND-FLAGS, as for `grant_role`
revoke_role() {
  local role="$1" member condition=() group=()
  member="serviceAccount:$(require ACCOUNT_EMAILS "$2")"
  is_managed "account.$2" || [[ "$MODE" == dry-run ]] || return 0
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
  has_binding "$member" "$role" "${group[@]}" get-iam-policy "$@" ||
    [[ "$MODE" == dry-run ]] || return 0
  change "revoke $role on $1 from $member" "${group[@]}" remove-iam-policy-binding "$@" --member="$member" \
    --role="$role" "${condition[@]}" --format=none
}
# A deployment that has moved, or whose DATABASE was changed before it was complete, may have roles on several databases.
# shellcheck disable=SC2153 # the configuration sets it
for account in "${STORE_ACCOUNTS[@]}"; do
  if [[ "$MODE" == dry-run ]]; then
    revoke_database_role "$account" "$DATABASE"
  elif is_managed "account.$account"; then
    while IFS=$'\t' read -r role member condition; do
      [[ "$role $member" == "roles/datastore.user serviceAccount:$(require ACCOUNT_EMAILS "$account")" ]] || continue
      [[ "$condition" =~ ^resource\.name==\"projects/$PROJECT/databases/([^\"]+)\"$ ]] || continue
      revoke_database_role "$account" "${BASH_REMATCH[1]}"
    done <<<"$(list_project_roles)"
  fi
  [[ -z "$BUCKET" || "$account" == links ]] || revoke_role roles/storage.objectUser "$account" -- gcloud storage buckets -- "gs://$BUCKET"
done
revoke_role roles/run.builder builder --condition=None -- gcloud projects -- "$PROJECT"
while read -r kept account; do
  revoke_role roles/secretmanager.secretAccessor "$account" -- gcloud secrets -- "$kept"
done < <(list_secret_readers)
for account in "${STORE_ACCOUNTS[@]}" invoker builder smoke; do
  remove "service account $(require ACCOUNT_EMAILS "$account")" "account.$account" \
    gcloud iam service-accounts describe "$(require ACCOUNT_EMAILS "$account")" --format="value(email)" -- \
    gcloud iam service-accounts delete "$(require ACCOUNT_EMAILS "$account")"
done
# A deployment that has moved from one database to another may have made both.
IFS=+ read -ra databases <<<"$(get LEDGER created.database)"
[[ "$(get LEDGER created.database)" != yes && "$MODE" != dry-run ]] || databases=("$DATABASE")
for database in ${with_data:+"${databases[@]}"}; do
  put LEDGER created.database yes
  if is_managed rules && [[ "$MODE" == apply ]]; then
    release="projects/$PROJECT/releases/cloud.firestore"
    [[ "$database" == "(default)" ]] || release+="/$database"
    request DELETE "https://firebaserules.googleapis.com/v1/$release"
  fi
  remove "the delete protection of database $database" database \
    gcloud firestore databases describe --database="$database" --format="value(name)" -- \
    gcloud firestore databases update --database="$database" --no-delete-protection
  remove "database $database, with all tasks" database \
    gcloud firestore databases describe --database="$database" --format="value(name)" -- \
    gcloud firestore databases delete --database="$database"
done
[[ -z "$with_data" || "$MODE" == dry-run || " ${databases[*]} " == *" $DATABASE "* ]] ||
  log "Database $DATABASE is kept: these scripts did not make it."
[[ -z "$COLLECTION_PREFIX" ]] || log "
The tasks stay in your app's database, with their indexes. To delete them, and nothing else:
  gcloud firestore bulk-delete --database=\"$DATABASE\" --project=$PROJECT --collection-ids=$(list_collections)"
# The secret goes last, because its annotations are the ledger. If a database that deploy.sh created is kept, the secret
# is kept too, so that the database can still be removed later.
if [[ -n "$with_data" || "$MODE" == dry-run || ${#databases[@]} == 0 ]]; then
  remove "secret $SECRET" secret \
    gcloud secrets describe "$SECRET" --format="value(name)" -- \
    gcloud secrets delete "$SECRET"
  is_managed secret || [[ "$MODE" == dry-run ]] || change "clear the ledger in secret $SECRET, which is yours" \
    gcloud secrets update "$SECRET" --clear-annotations
  # shellcheck disable=SC2034 # `release_lock` reads it
  LOCK=none # it is gone with the ledger
else
  log "Database ${databases[*]} is kept, and so is secret $SECRET, which records that deploy.sh created it." \
    "--with-data removes both."
fi
log "" "What stays: the enabled APIs, the uploaded sources in the bucket run-sources-$PROJECT-$REGION, which other services may share," \
  "backups until they expire, and logs. Names of queues stay taken for some days."
[[ "$MODE" != check ]] || log "" "Nothing was removed. Run infra/teardown.sh --yes to remove all this."
