# The database: how it is made and protected, and how a deployment moves to another one, such as a restored backup.
#
# Two databases must never be served at once: what one half of the requests writes would be missing in the other. So a
# move first fences the old database: the sweep's job and the queues are paused, and no account of this deployment may use
# it any more. Then all functions move, and only then the queues and the job go on. These entries of the ledger make sure
# that an interrupted move is completed or given up, and never left in between:
#
#   database           the database that the serving functions use
#   fenced             the old database, from before the fence is put up until it is gone
#   fenced.at          when the last role was revoked (seconds since the epoch)
#   fenced.kept        the queues that were paused before, joined by +, and stay so
#   moving             the new database, from before the first function moves until the last has
#   previous.database  the old database, as long as rollback.sh would lead back to it
# shellcheck shell=bash disable=SC2034,SC2153 # variables set here are used elsewhere, and the other way round

create_database() {
  log_step "Firestore"
  require_own_database # until a moment ago, Firestore may have been off
  if [[ -n "$COLLECTION_PREFIX" ]]; then # it is an app's, to make and to protect
    record "prefix=$COLLECTION_PREFIX"
    return
  fi
  describe_database
  if [[ -z "$DATABASE_TYPE" ]]; then
    require_location
    own_database
    change "create Firestore database $DATABASE in ${FIRESTORE_LOCATION:-$REGION}" gcloud firestore databases create \
      --database="$DATABASE" --location="${FIRESTORE_LOCATION:-$REGION}" --type=firestore-native --delete-protection \
      --enable-pitr
  fi
  protect_database
}

# Firestore is not in each region that has functions. A place beside it is for you to choose: it is for good.
require_location() {
  local location="${FIRESTORE_LOCATION:-$REGION}" found
  found="$(query gcloud firestore locations list --format="value(locationId)")" || return 0
  has_line "$location" "$found" || die "Firestore is not in $location. Write another place in FIRESTORE_LOCATION: \
$(paste -sd' ' - <<<"$found")"
}

# Set DATABASE_TYPE, which is empty if there is no database, and whether it is PROTECTED and has RECOVERY. Refuse one that
# cloudsched cannot use.
describe_database() {
  local found edition location
  DATABASE_TYPE="" PROTECTED="" RECOVERY=""
  found="$(query gcloud firestore databases describe --database="$DATABASE" \
    --format="value(type,deleteProtectionState,pointInTimeRecoveryEnablement,databaseEdition,locationId)")" || return 0
  IFS=$'\t' read -r DATABASE_TYPE PROTECTED RECOVERY edition location <<<"$found"
  [[ "$DATABASE_TYPE" == FIRESTORE_NATIVE ]] ||
    die "Database $DATABASE is $DATABASE_TYPE. cloudsched needs Firestore in native mode: set DATABASE to another ID."
  [[ "$edition" != ENTERPRISE ]] || die "Database $DATABASE has Firestore's Enterprise edition, whose indexes work \
otherwise: what they lack is searched for, slowly and at a price. cloudsched needs the Standard edition: set DATABASE to another ID."
  [[ -z "$FIRESTORE_LOCATION" || "$location" == "$FIRESTORE_LOCATION" ]] || die "Database $DATABASE is in $location, and the \
configuration wants it in $FIRESTORE_LOCATION. A database cannot be moved. If it may stay there, set \
FIRESTORE_LOCATION=\"$location\"; if not, set NAME or DATABASE to another one."
}

# Refuse a database that another program uses, before anything is changed. Indexes and TTL policies hold for all collections
# of a name, wherever they are: an app's own messages would lose their indexes, and be deleted at their expireAt. With a
# prefix, only collections that have it count.
require_own_database() {
  [[ "$MODE" != dry-run ]] || return 0
  describe_database
  [[ -n "$DATABASE_TYPE$COLLECTION_PREFIX" ]] || return 0
  [[ -n "$DATABASE_TYPE" ]] || die "Database $DATABASE does not exist. COLLECTION_PREFIX is for the database that your app \
has: name it in DATABASE, such as \"(default)\"."
  ! owns_database || return 0
  [[ "$(get_deployed_database)" != "$DATABASE" ]] || return 0
  local found foreign kind
  request POST "https://firestore.googleapis.com/v1/projects/$PROJECT/databases/$DATABASE/documents:listCollectionIds" \
    '{"pageSize": 1000}'
  require_success "Firestore did not list the collections of database $DATABASE"
  foreign="$(python3 "$INFRA/lib/firestore_indexes.py" foreign-collections "$INFRA/resources.json" <<<"$RESPONSE_BODY")"
  # In a restored backup of an earlier version there may be indexes that this one does not know.
  if [[ "$RESPONSE_BODY" == *"\"${COLLECTION_PREFIX}sweeps\""* ]]; then
    require_no_other_deployment
  else
    for kind in foreign-composites foreign-overrides; do
      found="$(compare_indexes "$kind")"
      foreign+="${found:+$'\n'$found}"
    done
  fi
  require_narrow_rules
  found="$(describe_foreign_rules)"
  foreign+="${found:+$'\n'$found}"
  foreign="${foreign#$'\n'}"
  [[ -z "$foreign" ]] || die "Database $DATABASE is used by another program, and nothing was changed. It has:
$foreign
cloudsched would change the indexes of these collections and delete documents of them. Set COLLECTION_PREFIX to another one \
than '$COLLECTION_PREFIX', such as 'cloudsched_', for collections apart from the app's. Or leave DATABASE empty, and the \
deployment gets a database of its own."
}

# Refuse the tasks of another deployment: both would run them. A restored backup is nobody's yet.
require_no_other_deployment() {
  local role member condition
  while IFS=$'\t' read -r role member condition; do
    [[ "$role $condition" != "roles/datastore.user resource.name==\"projects/$PROJECT/databases/$DATABASE\"" ||
      "$member" == "serviceAccount:$(require ACCOUNT_EMAILS executor)" ||
      "$member" != serviceAccount:*-executor@"$PROJECT".iam.gserviceaccount.com ]] ||
      die "Database $DATABASE has tasks of another deployment, whose executor is ${member#*:}. Set another COLLECTION_PREFIX \
or DATABASE."
  done <<<"$(list_project_roles)"
}

# Give the database what it should not be without: no deletion by mistake, its state of each minute of the last seven days,
# and a backup each day. A restored database has none of them. BACKUP_RETENTION="" leaves an existing one as it is.
protect_database() {
  local schedules name retention day existing="" seconds
  [[ -n "$BACKUP_RETENTION" && -z "$COLLECTION_PREFIX" ]] || return 0
  seconds="$((${BACKUP_RETENTION%d} * 86400))s"
  if [[ -n "$DATABASE_TYPE" ]]; then
    [[ "$PROTECTED" == DELETE_PROTECTION_ENABLED ]] ||
      change "protect database $DATABASE from deletion" gcloud firestore databases update --database="$DATABASE" \
        --delete-protection
    [[ "$RECOVERY" == POINT_IN_TIME_RECOVERY_ENABLED ]] ||
      change "turn on point-in-time recovery of database $DATABASE" gcloud firestore databases update \
        --database="$DATABASE" --enable-pitr
  fi
  schedules="$(query gcloud firestore backups schedules list --database="$DATABASE" \
    --format="value(name.basename(),retention,weeklyRecurrence.day)")" || schedules=""
  while IFS=$'\t' read -r name retention day; do
    [[ -z "$name" || -n "$day" ]] || existing="$name"
    [[ "$existing" != "$name" || -z "$name" || "$retention" == "$seconds" ]] ||
      change "keep the backups of database $DATABASE for $BACKUP_RETENTION" gcloud firestore backups schedules update \
        --database="$DATABASE" --backup-schedule="$name" --retention="$BACKUP_RETENTION"
  done <<<"$schedules"
  [[ -n "$existing" ]] || change "back up database $DATABASE each day" gcloud firestore backups schedules create \
    --database="$DATABASE" --recurrence=daily --retention="$BACKUP_RETENTION"
}

# Note that these scripts make DATABASE. There may be several after moves, joined by +.
own_database() {
  local owned
  owned="$(get LEDGER created.database)"
  ! owns_database || return 0
  [[ "$owned" != yes ]] || owned="$(get_deployed_database)"
  record "created.database=${owned:+$owned+}$DATABASE"
}

# Test whether these scripts made DATABASE. Earlier versions wrote "yes" for the only one.
owns_database() {
  local owned
  owned="$(get LEDGER created.database)"
  [[ "$owned" == yes || "+$owned+" == *"+$DATABASE+"* ]]
}

# Print the database that the deployed functions use, or nothing if none is deployed. Earlier versions did not record it.
get_deployed_database() {
  local found
  if [[ -n "$(get LEDGER database)" || -z "$(get LEDGER digest.execute)" ]]; then
    printf '%s' "$(get LEDGER database)"
    return
  fi
  found="$(query gcloud run services describe "$NAME-execute" --region="$REGION" --format=json)" ||
    return 0
  python3 -c '
import json, sys
containers = json.load(sys.stdin)["spec"]["template"]["spec"]["containers"]
print(*(each["value"] for each in containers[0].get("env", []) if each["name"] == "CLOUDSCHED_DATABASE"), end="")' <<<"$found"
}

# ── Moves ────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Refuse what must not happen while a deployment moves to another database.
require_no_move() {
  local moving
  moving="$(get LEDGER moving)"
  [[ -z "$(get LEDGER fenced)" ]] || die "This deployment is moving away from database $(get LEDGER fenced), and its queues are \
paused. Run infra/upgrade.sh with DATABASE=\"${moving:-the new one}\" to complete the move\
${moving:+; requests may have moved already, so it cannot be given up}."
}

# Make the new database ready: it has to exist, and gets its protection, rules and roles. (Indexes are a step of upgrades.)
prepare_database() {
  log_step "Database: from $1 to $DATABASE"
  describe_database
  [[ -n "$DATABASE_TYPE" || "$MODE" == dry-run ]] || die "Database $DATABASE does not exist. Restore a backup into it, or \
make it with infra/deploy.sh --step=database."
  require_own_database
  protect_database
  release_rules
  grant_project_roles
}

# fence_database DATABASE: keep all that this deployment runs from using a database, and wait until that holds everywhere.
fence_database() {
  log_step "Fence around database $1"
  log "From now on nothing uses it: the API answers 503 until the functions have moved, which takes about ten minutes." \
    "Stop workers of yours that open it themselves."
  local queue state listed paused=() account
  require_no_other_role "$1"
  record "fenced=$1"
  listed="$(query gcloud tasks queues list --location="$REGION" --format="value(name.basename(),state)")" ||
    listed=""
  if [[ -z "$(get LEDGER fenced.kept)" ]]; then
    while IFS=$'\t' read -r queue state; do
      [[ "$state" != PAUSED ]] || ! is_own_queue "$queue" || paused+=("$queue")
    done <<<"$listed"
    local IFS=+
    record "fenced.kept=${paused[*]:-nothing}"
    unset IFS
  fi
  ! has_job || change "pause the job $NAME-sweep" gcloud scheduler jobs pause "$NAME-sweep" --location="$REGION"
  while IFS=$'\t' read -r queue state; do
    [[ "$state" == RUNNING ]] || continue
    is_own_queue "$queue" || continue
    change "pause queue $queue" gcloud tasks queues pause "$queue" --location="$REGION"
  done <<<"$listed"
  for account in "${STORE_ACCOUNTS[@]}"; do
    revoke_database_role "$account" "$1"
  done
  [[ -n "$(get LEDGER fenced.at)" ]] || record "fenced.at=$(date +%s)"
  wait_for_fence
}

# Test whether a queue is one of this deployment, whether or not the configuration still wants it.
is_own_queue() {
  local kind rest="${1#"$NAME"}"
  [[ "$rest" != "$1" ]] || return 1
  rest="${rest%-q[0-9]*}"
  [[ -n "$rest" ]] || return 0
  for kind in "${QUEUES[@]}"; do
    [[ "$rest" != "-$kind" ]] || return 0
  done
  return 1
}

# Test whether there is a job: a deployment that was interrupted may lack it, until deploy.sh is run again.
has_job() {
  query gcloud scheduler jobs describe "$NAME-sweep" --location="$REGION" --format="value(name)" >/dev/null
}

revoke_database_role() {
  local member expression="resource.name==\"projects/$PROJECT/databases/$2\"" found
  member="serviceAccount:$(require ACCOUNT_EMAILS "$1")"
  found="$(list_project_roles)"
  has_line "roles/datastore.user"$'\t'"$member"$'\t'"$expression" "$found" || [[ "$MODE" == dry-run ]] || return 0
  change "revoke roles/datastore.user on database $2 from $member" gcloud projects remove-iam-policy-binding "$PROJECT" \
    --member="$member" --role=roles/datastore.user --condition="expression=$expression,title=$NAME-database" \
    --format=none --quiet
}

list_project_roles() {
  query gcloud projects get-iam-policy "$PROJECT" --flatten="bindings[].members" --quiet \
    --format="value(bindings.role,bindings.members,bindings.condition.expression)" || true
}

# A role that somebody else gave an account would leave a gap in the fence.
require_no_other_role() {
  local role member condition account expression="resource.name==\"projects/$PROJECT/databases/$1\""
  while IFS=$'\t' read -r role member condition; do
    [[ "$role" =~ ^roles/(owner|editor|firebase\.(admin|developAdmin)|datastore\.(owner|user))$ ]] || continue
    [[ "$role" != roles/datastore.user || "$condition" != "$expression" ]] || continue # ours, which a fence revokes
    [[ -z "$condition" || "$condition" == *"databases/$1\""* ]] || continue
    for account in "${STORE_ACCOUNTS[@]}"; do
      [[ "$member" != "serviceAccount:$(require ACCOUNT_EMAILS "$account")" ]] ||
        die "$member has $role on the project, so it can still write to database $1. Revoke that, and run this again."
    done
  done <<<"$(list_project_roles)"
}

wait_for_fence() {
  [[ "$MODE" == apply ]] || return 0
  local remaining
  remaining=$(($(get LEDGER fenced.at) + IAM_PROPAGATION_SECONDS - $(date +%s)))
  ((remaining > 0)) || return 0
  log "waiting $remaining s until no server lets them use it any more"
  sleep "$remaining"
}

# Let the queues and the sweep go on. lift_fence back: the old database is used again, because the move was given up.
lift_fence() {
  log_step "Lifting the fence"
  local queue state
  if [[ "${1-}" == back ]]; then
    record "fenced.at=none"
    DATABASE="$(get LEDGER fenced)" grant_project_roles
  fi
  while IFS=$'\t' read -r queue state; do
    [[ "$state" == PAUSED && "+$(get LEDGER fenced.kept)+" != *"+$queue+"* ]] || continue
    is_own_queue "$queue" || continue
    change "resume queue $queue" gcloud tasks queues resume "$queue" --location="$REGION"
  done <<<"$(query gcloud tasks queues list --location="$REGION" --format="value(name.basename(),state)" || true)"
  ! has_job || change "resume the job $NAME-sweep" gcloud scheduler jobs resume "$NAME-sweep" --location="$REGION"
  record "fenced=none" "fenced.at=none" "fenced.kept=none" "moving=none"
}
