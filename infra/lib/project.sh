# The resources that the functions depend on: services, secret, accounts, roles and queues. Each step is
# idempotent: it looks at what exists and creates what is missing.
# shellcheck shell=bash disable=SC2034,SC2153 # variables set here are used elsewhere, and the other way round

SERVICES=(
  artifactregistry.googleapis.com     # stores the functions' images
  cloudbuild.googleapis.com           # builds them
  cloudresourcemanager.googleapis.com # tells a service account, such as CI's, the project's number
  cloudscheduler.googleapis.com       # invokes the sweep
  cloudtasks.googleapis.com
  firebaserules.googleapis.com
  firestore.googleapis.com
  iam.googleapis.com
  iamcredentials.googleapis.com       # lets the smoke test impersonate its account
  logging.googleapis.com              # keeps the addresses of feeds out of the request log
  monitoring.googleapis.com           # tells you when they do not
  run.googleapis.com                  # runs them
  secretmanager.googleapis.com
)
BUDGET_SERVICES=(billingbudgets.googleapis.com cloudbilling.googleapis.com) # only with BUDGET_A_MONTH

enable_services() {
  log_step "Services"
  local enabled service missing=()
  [[ -z "$BUDGET_A_MONTH" ]] || SERVICES+=("${BUDGET_SERVICES[@]}")
  enabled="$(query gcloud services list --enabled --format="value(config.name)")" || enabled=""
  for service in "${SERVICES[@]}"; do
    has_line "$service" "$enabled" || missing+=("$service")
  done
  ((${#missing[@]} == 0)) ||
    change "enable ${missing[*]}" gcloud services enable "${missing[@]}"
  [[ "$MODE" != apply ]] || ARE_SERVICES_ON=yes
}

# The secret comes first, because its annotations are the ledger.
create_secret() {
  log_step "Secret"
  local version lock="" replication=(--replication-policy=automatic)
  [[ -z "$SECRET_LOCATIONS" ]] ||
    replication=(--replication-policy=user-managed --locations="$(tr -s ' ' , <<<"${SECRET_LOCATIONS% }")")
  # A secret that somebody else has made is used as it is: in the places, and with the keys, that they chose.
  if ! read_ledger; then
    [[ "$MODE" != apply ]] || lock="$(describe_lock)"
    change "create secret $SECRET" gcloud secrets create "$SECRET" "${replication[@]}" --labels="$(list_labels)" \
      --set-annotations="created.secret=yes${lock:+,lock=$lock}"
    put LEDGER created.secret "yes"
    hold_lock "$lock"
  fi
  version="$(query gcloud secrets versions list "$SECRET" --filter="state=ENABLED" --sort-by="~createTime" --limit=1 \
    --format="value(name.basename())")" || version=""
  if [[ -z "$version" ]]; then
    add_secret_version
    version="${NEW_VERSION:-1}"
  fi
  [[ -n "$(get LEDGER secret.current)" ]] || record "secret.current=$version"
}

# Add a version of 48 random bytes, which never appear in an argument list, a file or a log. Sets NEW_VERSION.
add_secret_version() {
  NEW_VERSION=""
  local adding=(gcloud secrets versions add "$SECRET" --data-file=- --format="value(name.basename())" --project="$PROJECT" --quiet)
  case "$MODE" in
    dry-run) printf 'openssl rand -base64 48 | %s\n' "$(quote_command "${adding[@]}")" ;;
    check) printf 'differs: add a version to secret %s\n' "$SECRET" ;;
    *)
      take_lock
      log "add a version to secret $SECRET"
      NEW_VERSION="$(openssl rand -base64 48 | tr -d '\n' | "${adding[@]}")"
      ;;
  esac
  CHANGES=$((CHANGES + 1))
}

create_accounts() {
  log_step "Service accounts"
  local account email
  for account in "${ACCOUNTS[@]}"; do
    email="$(require ACCOUNT_EMAILS "$account")"
    ensure "service account $email" "account/$NAME-$account" "account.$account" \
      gcloud iam service-accounts describe "$email" --format="value(email)" -- \
      gcloud iam service-accounts create "$NAME-$account" --display-name="cloudsched $account" \
      --description="Created by cloudsched for the deployment $NAME"
  done
}

POLICY=""         # the policy that was read last, unless something was changed since then
POLICY_COMMAND="" # the command that read it

# Test whether a member has a role: has_binding MEMBER ROLE COMMAND…, where COMMAND prints the policy. (Not every
# `get-iam-policy` has a --filter.)
has_binding() {
  local member="$1" role="$2"
  shift 2
  if [[ "$*" != "$POLICY_COMMAND" ]]; then
    POLICY_COMMAND=""
    POLICY="$(query "$@" --flatten="bindings[].members" --format="value(bindings.role,bindings.members)")" || return 1
    POLICY_COMMAND="$*"
  fi
  has_line "$role"$'\t'"$member" "$POLICY"
}

# Grant a role unless it is already granted: grant_role WHAT MEMBER ROLE [--condition=…] -- COMMAND-GROUP --
# RESOURCE-AND-FLAGS, where the command group is, for example, `gcloud secrets`.
grant_role() {
  local what="$1" member="$2" role="$3" condition=() group=()
  shift 3
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
  ! has_binding "$member" "$role" "${group[@]}" get-iam-policy "$@" || return 0
  change "grant $role on $what to $member" "${group[@]}" add-iam-policy-binding "$@" \
    --member="$member" --role="$role" "${condition[@]}" --format=none
}

# The least privileges that work; docs/reference/resources.md gives the reason for each.
grant_project_roles() {
  log_step "Roles on the project"
  local account found expression="resource.name==\"projects/$PROJECT/databases/$DATABASE\""
  # The condition counts: after a restore, DATABASE may be another one than that which the account may use.
  found="$(list_project_roles)"
  for account in "${STORE_ACCOUNTS[@]}"; do
    ! has_line "roles/datastore.user"$'\t'"serviceAccount:$(require ACCOUNT_EMAILS "$account")"$'\t'"$expression" "$found" || continue
    change "grant roles/datastore.user on database $DATABASE to serviceAccount:$(require ACCOUNT_EMAILS "$account")" \
      gcloud projects add-iam-policy-binding "$PROJECT" --member="serviceAccount:$(require ACCOUNT_EMAILS "$account")" \
      --role=roles/datastore.user --condition="expression=$expression,title=$NAME-database" --format=none --quiet
  done
  grant_role "project $PROJECT" "serviceAccount:$(require ACCOUNT_EMAILS builder)" roles/run.builder --condition=None -- \
    gcloud projects -- "$PROJECT"
}

# Let the functions read the secrets that the configuration names: Cloud Run refuses a revision that cannot.
grant_secret_roles() {
  local account secret
  while read -r secret account; do
    grant_role "secret $secret" "serviceAccount:$(require ACCOUNT_EMAILS "$account")" roles/secretmanager.secretAccessor -- \
      gcloud secrets -- "$secret"
  done < <(list_secret_readers)
}

# Print each secret of yours that a function mounts, and the account of that function, on a line.
list_secret_readers() {
  local function entry account
  {
    [[ -z "$API_KEYS_SECRET" ]] || printf '%s api\n' "$API_KEYS_SECRET"
    for function in "${FUNCTIONS[@]}"; do
      account="$function"
      [[ "$function" != execute && "$function" != sweep ]] || account=executor
      while IFS= read -r entry; do
        entry="${entry#*=}"
        printf '%s %s\n' "${entry%:*}" "$account"
      done < <(list_secrets "$function")
    done
  } | sort -u
}

grant_resource_roles() {
  log_step "Roles on the secrets, the queues, the invoker and the bucket"
  local api executor invoker member priority queue admin=roles/cloudtasks.queueAdmin
  api="serviceAccount:$(require ACCOUNT_EMAILS api)" executor="serviceAccount:$(require ACCOUNT_EMAILS executor)"
  invoker="$(require ACCOUNT_EMAILS invoker)"
  # Both members of one resource follow each other, so that its policy is read once.
  for member in "$api" "$executor"; do
    grant_role "secret $SECRET" "$member" roles/secretmanager.secretAccessor -- gcloud secrets -- "$SECRET"
  done
  for member in "$api" "$executor"; do
    grant_role "account $NAME-invoker" "$member" roles/iam.serviceAccountUser -- gcloud iam service-accounts -- "$invoker"
  done
  for priority in "${QUEUES[@]}"; do
    queue="$(require QUEUE_NAMES "$priority")"
    for member in "$api" "$executor"; do
      grant_role "queue $queue" "$member" roles/cloudtasks.enqueuer -- gcloud tasks queues -- "$queue" --location="$REGION"
    done
    if [[ "$QUEUE_ADMIN" == on ]]; then
      grant_role "queue $queue" "$api" "$admin" -- gcloud tasks queues -- "$queue" --location="$REGION"
    elif has_binding "$api" "$admin" gcloud tasks queues get-iam-policy "$queue" --location="$REGION"; then
      change "revoke $admin on queue $queue from $api" gcloud tasks queues remove-iam-policy-binding "$queue" \
        --location="$REGION" --member="$api" --role="$admin" --format=none
    fi
  done
  grant_secret_roles
  [[ -n "$BUCKET" ]] || return 0
  query gcloud storage buckets describe "gs://$BUCKET" --format="value(name)" --quiet >/dev/null ||
    [[ "$MODE" == dry-run ]] || die "Bucket $BUCKET does not exist. Create it with the command in docs/run/deploy.md."
  for member in "$api" "$executor"; do
    grant_role "bucket $BUCKET" "$member" roles/storage.objectUser -- gcloud storage buckets -- "gs://$BUCKET"
  done
}

create_queues() {
  log_step "Queues"
  local priority queue rate concurrent listed found expected flags names=() created=()
  local limits="rateLimits.maxDispatchesPerSecond,rateLimits.maxConcurrentDispatches"
  local retry="retryConfig.minBackoff,retryConfig.maxBackoff,retryConfig.maxDoublings,retryConfig.maxAttempts"
  local listing=(gcloud tasks queues list --location="$REGION")
  listed="$(query "${listing[@]}" --format="value(name.basename(),$limits,$retry,retryConfig.maxRetryDuration)")" || listed=""
  clear_map existing
  while IFS=$'\t' read -r queue found; do
    [[ -n "$queue" ]] || continue
    put existing "$queue" "$found"
    names+=("$queue")
  done <<<"$listed"
  record_further_queues "${names[@]}"
  for priority in "${QUEUES[@]}"; do
    queue="$(require QUEUE_NAMES "$priority")"
    IFS=/ read -r rate concurrent <<<"$(get QUEUE_LIMITS "$priority")"
    flags=(
      --max-dispatches-per-second="$rate" --max-concurrent-dispatches="$concurrent"
      # Cloud Tasks retries a failed dispatch after 1, 2, 4, … s, and then every minute, so that an executor that was
      # down for an hour is at work a minute after its recovery. Cloud Tasks gives up when both 100 attempts and a
      # day are exhausted; by then the sweep has long sent replacements.
      --min-backoff=1s --max-backoff=60s --max-doublings=6 --max-attempts=100 --max-retry-duration=86400s
      --log-sampling-ratio=0.01
    )
    printf -v expected '%s\t' "$rate" "$concurrent" 1s 60s 6 100 86400s
    found="$(get existing "$queue")"
    if [[ -z "$found" ]]; then
      is_further_queue "$priority" || mark_managed "queue.$queue"
      change "create queue $queue" create_queue "$queue" --location="$REGION" "${flags[@]}"
      created+=("$queue")
      continue
    fi
    found="${found/.0/}" expected="${expected%$'\t'}" # gcloud prints the rate as a float: 500.0
    is_further_queue "$priority" || require_ours "queue/$queue" "queue.$queue" "It has $(describe_limits "$found"), and this deployment wants \
$(describe_limits "$expected")."
    if [[ "$found" != "$expected" ]]; then
      change "update queue $queue" gcloud tasks queues update "$queue" --location="$REGION" "${flags[@]}"
    fi
  done
  [[ "$MODE" != apply || ${#created[@]} == 0 ]] || require_queues "${created[@]}"
}

# Print the limits of a queue, as create_queues lists them, for people.
describe_limits() {
  local rate concurrent least most doublings attempts duration
  IFS=$'\t' read -r rate concurrent least most doublings attempts duration <<<"$1"
  printf '%s calls a second, %s at the same time, %s attempts in %s, %s to %s apart (%s doublings)' "$rate" "$concurrent" \
    "$attempts" "$duration" "$least" "$most" "$doublings"
}

QUEUE_TAKEN="Cloud Tasks does not give the name of a deleted queue again for three days (formerly seven). Deploy under \
another NAME, or wait."

# create_queue NAME FLAG…: as `gcloud tasks queues create`, but say what to do about a name that is still taken.
create_queue() {
  local errors status=0
  errors="$(gcloud tasks queues create "$@" 2>&1 >/dev/null)" || status=$?
  ((status)) || return 0
  printf '%s\n' "$errors" >&2
  [[ "$errors" != *"existed too recently"* ]] || die "$QUEUE_TAKEN"
  return "$status"
}

# Check that queues that were just created are there: with a name that is still taken, that may only seem to succeed. It
# takes a minute until a new queue is known.
require_queues() {
  local listed="" queue delay missing
  for delay in 10 20 30 60 ""; do
    listed="$(query "${listing[@]}" --format="value(name.basename())")" || listed=""
    missing=()
    for queue in "$@"; do
      has_line "$queue" "$listed" || missing+=("$queue")
    done
    ((${#missing[@]})) || return 0
    [[ -n "$delay" ]] || die "Cloud Tasks said that it created ${missing[*]}, but there is no such queue. $QUEUE_TAKEN"
    sleep "$delay"
  done
}

# is_further_queue KIND: test whether a kind of queue is one of several of its priority, such as high-q2.
is_further_queue() { [[ "$1" == *-q* ]]; }

# The ledger has up to 16 KiB, too little for an entry for each of hundreds of queues. So it has a number for each
# priority: these scripts made the queues from the second to the one with that number.
record_further_queues() {
  ((QUEUES_PER_PRIORITY > 1)) || return 0
  local priority number made entries=()
  for priority in "${PRIORITIES[@]}"; do
    made="$(get_further_queues "$priority")"
    for ((number = made + 1; number <= QUEUES_PER_PRIORITY; number++)); do
      [[ " $* " != *" $(require QUEUE_NAMES "$priority-q$number") "* ]] ||
        die "Queue $(require QUEUE_NAMES "$priority-q$number") exists, but these scripts did not create it. Choose another NAME."
    done
    ((made >= QUEUES_PER_PRIORITY)) || entries+=("created.queues.$priority=$QUEUES_PER_PRIORITY")
  done
  ((${#entries[@]} == 0)) || record "${entries[@]}"
}

# Print up to which number these scripts made the queues of a priority. Earlier versions had an entry for each.
get_further_queues() {
  local made name="$NAME-$1"
  made="$(get LEDGER "created.queues.$1")"
  made="${made:-1}"
  [[ "$1" != normal ]] || name="$NAME"
  while [[ "$(get LEDGER "created.queue.$name-q$((made + 1))")" == yes ]]; do made=$((made + 1)); done
  printf '%s' "$made"
}
