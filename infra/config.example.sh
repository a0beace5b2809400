# Copy this file to infra/config.sh and edit it. The scripts read nothing else. Only PROJECT is required: what you leave
# out keeps the value shown here. docs/reference/settings.md has these settings as tables, made from the comments below.
# shellcheck shell=bash disable=SC2034

# Location ------------------------------------------------------------------------------------------------------------
# The project's ID. Required.
PROJECT=""
# The region of the functions, the queues, the job that calls the sweep, and the database.
REGION="us-central1"
# Where the database is created, if not in `REGION`, such as the multi-regions `nam5` and `eur3`. You cannot change it
# later.
FIRESTORE_LOCATION=""
# The ID of the Firestore database. Empty means one of its own, called as `NAME` says, or the one that is deployed
# already. Name only a database that is empty or restored from a backup, or an app's, with a `COLLECTION_PREFIX`.
DATABASE=""
# With what the IDs of all collections begin, such as `cloudsched_`, for a deployment in the database of an app. You cannot
# change it later. See docs/run/deploy.md.
COLLECTION_PREFIX=""
# How long daily backups are kept, from `1d` to `98d`. With them come point-in-time recovery and delete protection.
# Empty leaves all three as they are.
BACKUP_RETENTION="7d"
# The prefix of all resource names, such as `cloudsched-api`: 2 to 20 lowercase letters, digits and hyphens.
NAME="cloudsched"

# Access to the API ---------------------------------------------------------------------------------------------------
# `private` lets Cloud Run admit only the accounts below. `public` lets everybody reach the API, which authenticates
# each request itself. Web and mobile clients need `public`.
API_ACCESS="private"
# `yes` adds a public function for what people open by a link (mails and calendar feeds). Beside a private API, links
# need it.
PUBLIC_LINKS="no"
# The Firebase project whose users may call the API. Live lists in clients work only with the users of `PROJECT`.
FIREBASE_PROJECT=""
# The service accounts that may call the API, with their roles: `("billing@p.iam.gserviceaccount.com=viewer")`. See
# docs/guides/access.md.
SERVICE_ACCOUNTS=()
# The name of a secret that you create. It holds the lines that `cloudsched admin keys new` prints.
API_KEYS_SECRET=""
# Further addresses of the API that tokens may name as their audience, such as your own domain, separated by spaces.
API_ADDRESSES=""
# The web origins whose pages may call the API, such as `https://app.example`, separated by spaces, or `*` for all.
CORS_ORIGINS=""
# How many tasks that have not ended one user may have. Empty means 1000, `unlimited` means any number.
MAX_ACTIVE_TASKS=""
# How many tasks one user may create in a minute. Empty means any number.
MAX_CREATIONS_A_MINUTE=""
# How many tasks runs may create for one owner in a minute, and how many such tasks may multiply by their own runs in
# an hour. Empty means 500, `unlimited` means any number.
MAX_RUN_CREATIONS_A_MINUTE=""
# `deploy` releases `firestore.rules`, unless the database has other rules. `replace` replaces those, too. `keep` leaves
# the database's rules alone.
RULES="deploy"

# Queues --------------------------------------------------------------------------------------------------------------
# How fast tasks of the priority `critical` run: calls a second, then calls at the same time. Cloud Tasks allows at most
# `500/5000` in one queue.
QUEUE_CRITICAL="500/40"
# The same for the priority `high`.
QUEUE_HIGH="300/30"
# The same for the priority `normal`, which tasks have by default.
QUEUE_NORMAL="200/30"
# The same for the priority `low`.
QUEUE_LOW="50/10"
# The same for mails. Take what your mail provider allows.
QUEUE_EMAIL="10/10"
# The same for pushes to phones and browsers.
QUEUE_MOBILE="10/10"
# The same for calls of webhooks, Telegram and Slack.
QUEUE_WEBHOOK="10/10"
# The same for messages to your team's own channels.
QUEUE_OPERATOR="5/5"
# The same for calls that renew a wake-up more than 30 days ahead. They run no handler.
QUEUE_HOPS="100/5"
# `on` lets the API look at these queues and pause, change and purge them, and gives its account the role for that. `off`
# takes the role away. See docs/run/operate.md.
QUEUE_ADMIN="off"
# Over how many ranges of Firestore's indexes tasks are spread, up to 1000. Never lower it. See docs/run/capacity.md.
SHARDS=1
# How many queues each priority has, up to 200, each with the limits above. You need more than one for more than 500
# calls a second of one priority. See docs/run/capacity.md.
QUEUES_PER_PRIORITY=1

# Functions -----------------------------------------------------------------------------------------------------------
# Cloud Run's Python runtime of the functions, `python311` or newer.
RUNTIME="python312"
# The memory of each instance. Functions that run scripts need `512Mi` or more.
MEMORY="512Mi"
# How many requests one instance of the API serves at a time. It gets as many threads.
API_CONCURRENCY=20
# How many instances of the API stay warm. 1 avoids cold starts, and costs money while nobody calls.
API_MIN_INSTANCES=0
# The most instances of the API. A new project's quota is often 20 for all functions together.
API_MAX_INSTANCES=3
# The most instances of the function for links, if `PUBLIC_LINKS` is `yes`.
LINKS_MAX_INSTANCES=1
# How many handlers one instance runs at a time, each in a thread of its own. Take 32 or more for handlers that mostly
# wait. See docs/run/capacity.md.
EXECUTE_CONCURRENCY=10
# How many instances that run handlers stay warm. 1 avoids cold starts, and costs money while nothing runs.
EXECUTE_MIN_INSTANCES=0
# The most instances that run handlers. Times `EXECUTE_CONCURRENCY`, it has to cover the sum of all queues' calls at the
# same time.
EXECUTE_MAX_INSTANCES=15
# How many seconds one call of a handler may take, from 15 to 1800. Cloud Tasks waits no longer.
EXECUTE_TIMEOUT=1800
# When the sweep runs, as a cron expression in UTC.
SWEEP_SCHEDULE="* * * * *"
# How many seconds one sweep may take, from 15 to 1800. With `CLOUDSCHED_FALLBACK` it runs handlers: add their time.
SWEEP_TIMEOUT=540

# Your code and its settings ------------------------------------------------------------------------------------------
# Further environment variables of the functions: `("CLOUDSCHED_RETENTION_DAYS=30")`. Variables that the scripts derive
# from this file are refused.
SETTINGS=()
# Variables whose values are secrets that you create, each with its version: `("STRIPE_KEY=stripe:1")`. All functions but
# `links` get them, unless you name some: `("STRIPE_KEY@execute=stripe:1")`. See docs/run/operate.md.
SECRETS=()
# The folder with `main.py` and your handlers. Empty means this repository's `functions/`.
FUNCTIONS_DIR=""
# Files to deploy from that folder besides `*.py` and `requirements.txt`: `("templates/*.html")`.
FUNCTIONS_FILES=()
# A bucket that you create, for results of durable handlers that are too large for a document. See docs/run/deploy.md.
BUCKET=""

# Your organisation's rules --------------------------------------------------------------------------------------------
# From where the API and `links` can be reached: `all`, `internal`, or `internal-and-cloud-load-balancing`. See
# docs/run/deploy.md.
API_INGRESS="all"
# Further flags of `gcloud run deploy`, for all functions or some: `("--network=shared" "execute --vpc-egress=all-traffic")`.
RUN_FLAGS=()
# Labels of the functions, the signing secret and the images' repository, for your bills: `("team=payments")`.
LABELS=()
# The regions that keep the signing secret, separated by spaces. Empty lets Google choose.
SECRET_LOCATIONS=""
# What somebody else has made under names of this deployment, and the scripts may use and change all the same:
# `("queue/cloudsched-high" "account/*")`. The kinds are `account`, `queue`, `function`, `job`, `repository` and
# `exclusion`.
ADOPT=()

# Monitoring ----------------------------------------------------------------------------------------------------------
# `off` creates no metrics, alerts and dashboard. Those that exist stay.
MONITORING="on"
# The channels that alerts notify, such as `projects/P/notificationChannels/1`, separated by spaces. See
# docs/run/dashboard.md.
NOTIFICATION_CHANNELS=""
# An alert comes when the runs of ten minutes, at that rate, would cost more dollars than this in a day.
ALERT_DOLLARS_A_DAY=20
# Your own Cloud Run services in which you mount cloudsched, separated by spaces. Metrics, alerts and the exclusion of feeds
# from the log cover them, too.
MOUNTED_SERVICES=""
# The billing account's administrators and users get a mail at 50, 90 and 100 percent of this budget for the project, in
# the account's currency. It caps nothing. Empty makes no budget, and leaves one that exists.
BUDGET_A_MONTH=""

# Smoke test ----------------------------------------------------------------------------------------------------------
# The handler of the task that tests a deployment.
SMOKE_HANDLER="remind"
# That task's payload.
SMOKE_PAYLOAD='{"text": "cloudsched works"}'
# Your own service account for calling the API. Empty means one that the script creates and disables again.
SMOKE_ACCOUNT=""
