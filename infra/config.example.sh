# Copy to infra/config.sh and edit. Everything that the scripts do follows from this file; docs/deployment.md explains
# each value. Only PROJECT has no default, and what you leave out keeps the value that it has here.
# shellcheck shell=bash disable=SC2034

# Where ---------------------------------------------------------------------------------------------------------------
PROJECT=""                       # the project's id
REGION="us-central1"             # functions, queues and the sweep's schedule
FIRESTORE_LOCATION="us-central1" # where the database is created; it can never be moved. nam5: several regions
DATABASE="(default)"             # the database's id
NAME="cloudsched"                # what everything is named after: <NAME>-api, <NAME>-critical, … (2 to 20)

# Who may use the api -------------------------------------------------------------------------------------------------
API_ACCESS="private"             # private: Cloud Run lets in only the accounts below · public: the api alone decides,
                                 # which web and mobile clients need
FIREBASE_PROJECT=""              # the Firebase project whose users come in; for the rules to know them too, PROJECT
SERVICE_ACCOUNTS=()              # for example ("billing@p.iam.gserviceaccount.com=viewer"); roles: docs/security.md
API_KEYS_SECRET=""               # the secret, made by you, with the lines of `cloudsched keys new`
API_ADDRESSES=""                 # other addresses of the api for which tokens are made: a domain of your own
CORS_ORIGINS=""                  # the web origins whose pages may call it: "https://app.example https://…"
MAX_ACTIVE_TASKS=""              # of one user; empty for any number
MAX_CREATIONS_A_MINUTE=""        # of one user; empty for any number
RULES="deploy"                   # deploy: release firestore.rules, unless there are others · replace: release them
                                 # in place of others · keep: leave the database's rules alone

# How much: <dispatches a second>/<at the same time> of each queue (Cloud Tasks: at most 500/5000) --------------------
QUEUE_CRITICAL="500/400"
QUEUE_HIGH="300/300"
QUEUE_NORMAL="200/200"
QUEUE_LOW="50/60"

# Functions -----------------------------------------------------------------------------------------------------------
RUNTIME="python312"
MEMORY="512Mi"
API_CONCURRENCY=20               # requests that one instance serves at the same time; it gets as many threads
API_MIN_INSTANCES=0              # 1 keeps one warm: no cold start, for about 10 USD a month
API_MAX_INSTANCES=20
EXECUTE_CONCURRENCY=10           # handlers that one instance runs at the same time
EXECUTE_MIN_INSTANCES=0
EXECUTE_MAX_INSTANCES=100        # times EXECUTE_CONCURRENCY must be no less than all queues send at the same time
EXECUTE_TIMEOUT=1800             # seconds; Cloud Tasks waits no longer than 30 minutes for an answer
SWEEP_SCHEDULE="* * * * *"
SWEEP_TIMEOUT=540                # seconds; ten thousand overdue tasks take about five minutes. With the fallback of
                                 # docs/configuration.md the sweep runs handlers: as long as they need, up to 1800

# What the functions are told besides; see docs/configuration.md ------------------------------------------------------
SETTINGS=()                      # for example ("CLOUDSCHED_RETENTION_DAYS=30" "CLOUDSCHED_DEFAULT_LEAD_SECONDS=60")
FUNCTIONS_DIR=""                 # the folder with main.py and your handlers; this repository's functions/ if empty

BUCKET=""                        # the bucket, made by you, for results of durable handlers too large for a document

# The task that proves that it works ----------------------------------------------------------------------------------
SMOKE_HANDLER="remind"
SMOKE_PAYLOAD='{"text": "cloudsched works"}'
SMOKE_ACCOUNT=""                 # a service account of yours to call the api as; if empty, one is made
