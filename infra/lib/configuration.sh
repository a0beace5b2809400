# The configuration: what it says, what of it cannot work, and the names that follow from it.
# shellcheck shell=bash disable=SC2034,SC2153 # what is set here is used by the scripts, and what is used is in the configuration

# Load the configuration, and refuse what cannot work before anything is created.
configure() {
  local file="$1"
  [[ -f "$file" ]] || die "There is no $file. Copy infra/config.example.sh to it and set PROJECT."
  # shellcheck source=config.example.sh
  source "$INFRA/config.example.sh"
  # shellcheck source=config.example.sh
  source "$file"
  [[ "$PROJECT" =~ ^[a-z][a-z0-9-]{4,28}[a-z0-9]$ ]] || die "PROJECT is '$PROJECT'; set it to your project's id in $file."
  [[ "$NAME" =~ ^[a-z][a-z0-9-]{0,18}[a-z0-9]$ ]] || die "NAME is '$NAME'; it is 2 to 20 small letters, digits and hyphens."
  [[ "$API_ACCESS" =~ ^(private|public)$ ]] || die "API_ACCESS is '$API_ACCESS'; it is private or public."
  [[ "$RULES" =~ ^(deploy|keep|replace)$ ]] || die "RULES is '$RULES'; it is deploy, keep or replace."
  ((EXECUTE_TIMEOUT >= 15 && EXECUTE_TIMEOUT <= 1800)) || die "EXECUTE_TIMEOUT is $EXECUTE_TIMEOUT; Cloud Tasks waits from 15 to 1800 seconds."
  ((SWEEP_TIMEOUT >= 15 && SWEEP_TIMEOUT <= 1800)) || die "SWEEP_TIMEOUT is $SWEEP_TIMEOUT; Cloud Scheduler waits from 15 to 1800 seconds."
  check_access
  local setting priority sum=0 derived
  derived="^(CLOUDSCHED_(FIREBASE_PROJECT|SERVICE_ACCOUNTS|AUDIENCES|TRUST_CLOUD_RUN|API_KEYS|SWEEPER|CORS_ORIGINS|MAX_[A-Z_]*|BUCKET)|FIREBASE_AUTH_EMULATOR_HOST|K_SERVICE)="
  for setting in "${SETTINGS[@]}"; do
    [[ "$setting" =~ ^[A-Z][A-Z0-9_]*=[^~]*$ ]] || die "SETTINGS has '$setting'; each is NAME=value, without a ~."
    [[ ! "$setting" =~ $derived ]] ||
      die "SETTINGS has ${BASH_REMATCH[1]}, which follows from other values of the configuration: docs/deployment.md."
    [[ "$setting" != CLOUDSCHED_*SECRET=* ]] || die "SETTINGS has a secret. Secrets live in Secret Manager; see infra/rotate-secret.sh."
  done
  for priority in "${PRIORITIES[@]}"; do
    [[ "$(queue_limits "$priority")" =~ ^([0-9]{1,3})/([0-9]{1,4})$ ]] || die "QUEUE_${priority^^} is '$(queue_limits "$priority")'; it is <a second>/<at the same time>."
    ((BASH_REMATCH[1] >= 1 && BASH_REMATCH[1] <= 500)) || die "QUEUE_${priority^^}: Cloud Tasks dispatches 1 to 500 a second."
    ((BASH_REMATCH[2] >= 1 && BASH_REMATCH[2] <= 5000)) || die "QUEUE_${priority^^}: Cloud Tasks has 1 to 5000 at the same time."
    sum=$((sum + BASH_REMATCH[2]))
  done
  ((sum <= EXECUTE_CONCURRENCY * EXECUTE_MAX_INSTANCES)) || die \
    "The queues send up to $sum dispatches at the same time, but EXECUTE_CONCURRENCY × EXECUTE_MAX_INSTANCES takes only \
$((EXECUTE_CONCURRENCY * EXECUTE_MAX_INSTANCES)). Cloud Run would answer 429, at which Cloud Tasks slows the queues down."
  FUNCTIONS_DIR="${FUNCTIONS_DIR:-$INFRA/../functions}"
  SECRET="$NAME-dispatch"
}

# Refuse what would let nobody in, or what the api would not understand.
check_access() {
  local entry account_pattern='[^@=~[:space:]]+@[a-z0-9.-]+\.gserviceaccount\.com'
  [[ "$FIREBASE_PROJECT" =~ ^([a-z][a-z0-9-]{4,28}[a-z0-9])?$ ]] || die "FIREBASE_PROJECT is '$FIREBASE_PROJECT'; it is a project's id."
  [[ "$SMOKE_ACCOUNT" =~ ^($account_pattern)?$ ]] || die "SMOKE_ACCOUNT is '$SMOKE_ACCOUNT'; it is a service account's address."
  for entry in "${SERVICE_ACCOUNTS[@]}"; do
    [[ "$entry" =~ ^$account_pattern=(user|reader|viewer|admin)$ ]] ||
      die "SERVICE_ACCOUNTS has '$entry'; each is a service account's ADDRESS=ROLE: viewer, admin, user or reader."
  done
  [[ "$API_KEYS_SECRET" =~ ^[A-Za-z0-9_-]{0,255}$ ]] || die "API_KEYS_SECRET is '$API_KEYS_SECRET'; it is a secret's name."
  [[ "$API_ADDRESSES" =~ ^(https://[^~[:space:]]+( |$))*$ ]] || die "API_ADDRESSES is '$API_ADDRESSES'; it is https://… with spaces between."
  [[ "$CORS_ORIGINS" =~ ^(\*|(https?://[^~/[:space:]]+( |$))*)$ ]] || die "CORS_ORIGINS is '$CORS_ORIGINS'; it is * or https://… (without a path), with spaces between."
  [[ "$MAX_ACTIVE_TASKS" =~ ^([1-9][0-9]*)?$ ]] || die "MAX_ACTIVE_TASKS is '$MAX_ACTIVE_TASKS'; it is a number, or empty."
  [[ "$MAX_CREATIONS_A_MINUTE" =~ ^([1-9][0-9]*)?$ ]] || die "MAX_CREATIONS_A_MINUTE is '$MAX_CREATIONS_A_MINUTE'; it is a number, or empty."
  [[ "$BUCKET" =~ ^([a-z0-9][a-z0-9._-]{1,220}[a-z0-9])?$ ]] || die "BUCKET is '$BUCKET'; it is a bucket's name, without gs://."
  [[ "$API_ACCESS" == private || -n "$FIREBASE_PROJECT$API_KEYS_SECRET${SERVICE_ACCOUNTS[*]}" ]] ||
    die "API_ACCESS is public, but nobody could come in: set FIREBASE_PROJECT, SERVICE_ACCOUNTS or API_KEYS_SECRET."
  ACCOUNTS=(api executor invoker builder)
  [[ -n "$SMOKE_ACCOUNT" ]] || ACCOUNTS+=(smoke)
  SMOKE_ACCOUNT="${SMOKE_ACCOUNT:-$(account smoke)}"
  API_ACCOUNTS=("${SERVICE_ACCOUNTS[@]}" "$SMOKE_ACCOUNT=admin")
}

PRIORITIES=(critical high normal low)
FUNCTIONS=(execute sweep api) # the order in which they are deployed: who must understand before who speaks

queue_limits() {
  local name="QUEUE_${1^^}"
  printf '%s' "${!name}"
}

# The name of a priority's queue, as `queue_id` in src/cloudsched/adapters/google/cloud_tasks.py has it.
queue_of() {
  if [[ "$1" == normal ]]; then
    printf '%s' "$NAME"
  else
    printf '%s-%s' "$NAME" "$1"
  fi
}

account() { printf '%s-%s@%s.iam.gserviceaccount.com' "$NAME" "$1" "$PROJECT"; }

# The address that Cloud Run gives a service by its name, whether or not it exists yet; $2 is a revision's tag.
service_url() { printf 'https://%s%s-%s-%s.%s.run.app' "${2:+$2---}" "$NAME" "$1" "$PROJECT_NUMBER" "$REGION"; }

find_project() {
  PROJECT_NUMBER="$(ask gcloud projects describe "$PROJECT" --format="value(projectNumber)" --quiet)" || {
    [[ "$MODE" == dry-run ]] || die "There is no project $PROJECT, or you may not see it (gcloud auth login)."
    PROJECT_NUMBER="PROJECT_NUMBER"
  }
}
