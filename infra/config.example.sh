# Copy this file to infra/config.sh and edit it. It is the scripts' only input; docs/run/deploy.md explains each value.
# Only PROJECT is required. Any setting that you leave out keeps the value shown here.
# shellcheck shell=bash disable=SC2034

# Location ------------------------------------------------------------------------------------------------------------
PROJECT=""                       # the project's ID
REGION="us-central1"             # region of the functions, the queues and the sweep's job
FIRESTORE_LOCATION="us-central1" # where the database is created; cannot be changed later. nam5 is a multi-region
DATABASE=""                      # empty: a new one that is named as NAME says, and later the one that is deployed. Another ID: one
                                 # that is empty or restored from a backup; never one that an app uses
BACKUP_RETENTION="7d"            # how long daily backups are kept, up to 98d; beside them the database has point-in-time
                                 # recovery and delete protection. Empty: all three stay as they are
NAME="cloudsched"                # prefix of all resource names: <NAME>-api, <NAME>-critical, … (2 to 20 characters)

# API access ----------------------------------------------------------------------------------------------------------
API_ACCESS="private"             # private: Cloud Run admits only the accounts below. public: anyone can reach the API,
                                 # which authenticates each request itself; web and mobile clients need this
PUBLIC_LINKS="no"                # yes: a public function for what people open by a link (from mails, and calendar feeds) and
                                 # for your mail provider's reports. Beside a private API, links need it
FIREBASE_PROJECT=""              # the Firebase project whose users may call the API; firestore.rules knows only PROJECT's
SERVICE_ACCOUNTS=()              # for example ("billing@p.iam.gserviceaccount.com=viewer"); roles: docs/guides/access.md
API_KEYS_SECRET=""               # a secret that you create, with the lines that `cloudsched keys new` prints
API_ADDRESSES=""                 # additional URLs of the API that tokens may name as audience, such as your own domain
CORS_ORIGINS=""                  # the web origins whose pages may call the API: "https://app.example https://…"
MAX_ACTIVE_TASKS=""              # per user; empty for 1000, or unlimited
MAX_CREATIONS_A_MINUTE=""        # per user; empty for no limit
RULES="deploy"                   # deploy: release firestore.rules, unless the database has other rules. replace: replace
                                 # other rules with them. keep: leave the database's rules alone

# Queue limits: <dispatches per second>/<concurrent dispatches> (Cloud Tasks allows at most 500/5000) -----------------
QUEUE_CRITICAL="500/40"
QUEUE_HIGH="300/30"
QUEUE_NORMAL="200/30"
QUEUE_LOW="50/10"
QUEUE_EMAIL="10/10"    # deliveries by e-mail: what your mail provider allows
QUEUE_MOBILE="10/10"
QUEUE_WEBHOOK="10/10"
QUEUE_OPERATOR="5/5"   # to your own channels
QUEUE_HOPS="100/5"     # dispatches to tasks more than 30 days ahead; they run nothing, and take milliseconds
SHARDS=1               # over how many ranges of Firestore's indexes tasks are spread: more than about 250 occurrences a
                       # second take more than one; see docs/run/capacity.md, "More shards"
QUEUES_PER_PRIORITY=1  # how many queues each priority has, with the limits above each: more than 500 dispatches a second
                       # of a priority take more than one; see docs/run/capacity.md, "More queues"

# Functions -----------------------------------------------------------------------------------------------------------
RUNTIME="python312"
MEMORY="512Mi"
API_CONCURRENCY=20               # concurrent requests per instance; each instance gets as many threads
API_MIN_INSTANCES=0              # 1 keeps an instance warm, which avoids cold starts for about 10 USD a month
API_MAX_INSTANCES=3              # a new project's quota is 20 instances for all functions together (20 vCPU)
LINKS_MAX_INSTANCES=1            # of the function for links, if PUBLIC_LINKS is yes
EXECUTE_CONCURRENCY=10           # concurrent handlers, and threads, per instance; 32 or more for handlers that mostly
                                 # wait, see docs/run/capacity.md, "More threads"
EXECUTE_MIN_INSTANCES=0
EXECUTE_MAX_INSTANCES=15         # times EXECUTE_CONCURRENCY must cover the sum of all queues' concurrent dispatches
EXECUTE_TIMEOUT=1800             # seconds; Cloud Tasks waits at most 30 minutes for a response
SWEEP_SCHEDULE="* * * * *"
SWEEP_TIMEOUT=540                # seconds; 40,000 overdue tasks take about two minutes. With CLOUDSCHED_FALLBACK
                                 # (docs/reference/settings.md) the sweep runs handlers: allow for them, up to 1800

# Additional environment variables; see docs/reference/settings.md ---------------------------------------------------------
SETTINGS=()                      # for example ("CLOUDSCHED_RETENTION_DAYS=30" "CLOUDSCHED_DEFAULT_LEAD_SECONDS=60")
SECRETS=()                       # variables that are secrets which you create: ("CLOUDSCHED_SMTP_URL=mail-server:1"), with
                                 # the version; CLOUDSCHED_SMTP_URL, CLOUDSCHED_APPRISE_URLS or CLOUDSCHED_SWEEP_PING,
                                 # which tells a dead-man's switch outside that the sweep runs: docs/run/dashboard.md
FUNCTIONS_DIR=""                 # the folder with main.py and your handlers; this repository's functions/ if empty
FUNCTIONS_FILES=()               # what to deploy from it besides *.py and requirements.txt: ("templates/*.html")

BUCKET=""                        # a bucket that you create, for durable handlers' results that exceed a document

# Monitoring ----------------------------------------------------------------------------------------------------------
MONITORING="on"                  # off: create no metrics, alert policies and dashboard; those that exist stay
NOTIFICATION_CHANNELS=""         # whom alerts tell: "projects/P/notificationChannels/1 …", separated by spaces
ALERT_DOLLARS_A_DAY=20           # an alert comes when what runs in five minutes would cost more than this in a day

# Smoke test ----------------------------------------------------------------------------------------------------------
SMOKE_HANDLER="remind"
SMOKE_PAYLOAD='{"text": "cloudsched works"}'
SMOKE_ACCOUNT=""                 # your own service account for calling the API; if empty, one is created
