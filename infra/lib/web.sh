# What gcloud has no command for: the Firebase Rules API, and the scheduler's own API.
# shellcheck shell=bash

WEB_STATUS=0
WEB_BODY=""
API_SIGN_IN=() # the command that prints a token for the api: `act_as_smoke` in access.sh sets it
API_TOKEN=""   # what it printed; good for an hour

# web METHOD URL [JSON]: sets WEB_STATUS and WEB_BODY. The token is in no argument list.
#
# The api gets its token twice: Cloud Run checks the one in X-Serverless-Authorization, and leaves the other its
# signature. So it comes in whether the api is private or public, and also while it becomes the one or the other.
web() {
  local command=(curl --silent --show-error --max-time 60 --request "$1" --header "Content-Type: application/json")
  local answer token="" header headers=(Authorization) sign_in=(gcloud auth print-access-token)
  if [[ "$2" == https://*.googleapis.com/* ]]; then
    command+=(--header "X-Goog-User-Project: $PROJECT")
  else
    headers+=(X-Serverless-Authorization) sign_in=("${API_SIGN_IN[@]}")
  fi
  [[ -z "${3-}" ]] || command+=(--data-binary "$3")
  command+=("$2")
  if [[ "$MODE" == dry-run ]]; then
    printf '%s' "$(typed "${command[@]}")"
    # shellcheck disable=SC2016 # printed, to be typed
    for header in "${headers[@]}"; do printf ' --header "%s: Bearer $(%s)"' "$header" "$(typed "${sign_in[@]}")"; done
    printf '\n'
    WEB_STATUS=0 WEB_BODY=""
    return
  fi
  if ((${#headers[@]} == 1)); then
    token="$("${sign_in[@]}")"
  else
    [[ -n "$API_TOKEN" ]] || API_TOKEN="$(patiently "${sign_in[@]}")"
    token="$API_TOKEN"
  fi
  answer="$(mktemp)"
  WEB_STATUS="$("${command[@]}" --output "$answer" --write-out '%{http_code}' \
    --config <(for header in "${headers[@]}"; do printf 'header = "%s: Bearer %s"\n' "$header" "$token"; done))" || WEB_STATUS=0
  WEB_BODY="$(cat "$answer")"
  rm -f "$answer"
}

# field PATH < JSON: print a field, or nothing, as in `field rulesetName <<<"$WEB_BODY"`; numbers are indices.
field() {
  python3 -c '
import json, sys
value = json.load(sys.stdin)
for key in sys.argv[1].split("."):
    value = value[int(key)] if isinstance(value, list) and len(value) > int(key) else value.get(key, "") if isinstance(value, dict) else ""
print(value, end="")' "$1"
}

RULES_API="https://firebaserules.googleapis.com/v1"

# Release firestore.rules, unless the database has rules of somebody else's.
release_rules() {
  step "Firestore rules"
  [[ "$RULES" != keep ]] || return 0
  local release="projects/$PROJECT/releases/cloud.firestore" ruleset="" body
  [[ "$DATABASE" == "(default)" ]] || release+="/$DATABASE"
  web GET "$RULES_API/$release"
  case "$WEB_STATUS" in
    200)
      ruleset="$(field rulesetName <<<"$WEB_BODY")"
      web GET "$RULES_API/$ruleset"
      [[ "$(field source.files.0.content <<<"$WEB_BODY")" != "$(cat "$INFRA/firestore.rules")" ]] || return 0
      is_ours rules || [[ "$RULES" == replace ]] || die "Database $DATABASE has rules that are not ours. Merge \
infra/firestore.rules into them and set RULES=keep, or set RULES=replace."
      ;;
    0 | 404) ;;
    *) die "The Firebase Rules API answered $WEB_STATUS: $WEB_BODY" ;;
  esac
  if [[ "$MODE" == check ]]; then
    CHANGES=$((CHANGES + 1))
    printf 'differs: release firestore.rules\n'
    return
  fi
  mark rules
  CHANGES=$((CHANGES + 1))
  say "release firestore.rules"
  body="$(python3 -c '
import json, sys
content = open(sys.argv[1], encoding="utf-8").read()
print(json.dumps({"source": {"files": [{"name": "firestore.rules", "content": content}]}}))' "$INFRA/firestore.rules")"
  web POST "$RULES_API/projects/$PROJECT/rulesets" "$body"
  need_200 "The rules were not accepted"
  body="{\"name\": \"$release\", \"rulesetName\": \"$(field name <<<"${WEB_BODY:-"{}"}")\"}"
  if [[ -n "$ruleset" ]]; then
    web PATCH "$RULES_API/$release" "{\"release\": $body}"
  else
    web POST "$RULES_API/projects/$PROJECT/releases" "$body"
  fi
  need_200 "The rules were not released"
}

need_200() { [[ "$MODE" == dry-run || "$WEB_STATUS" == 20? ]] || die "$1: $WEB_STATUS $WEB_BODY"; }

# Whether what serves knows the account as which the smoke test calls, which an upgrade may have changed.
knows_smoke() {
  act_as_smoke
  web GET "$(service_url api)/v1/tasks?pageSize=1"
  [[ "$WEB_STATUS" != 401 && "$WEB_STATUS" != 503 ]]
}

# Run one task from the API through the queue to a handler, and remove it.
smoke_test() {
  step "Smoke test: one task"
  local api id execution="" state="" turn
  api="$(service_url api)"
  [[ "$MODE" != check ]] || return 0
  act_as_smoke
  id="smoke-$(date -u +%Y%m%d%H%M%S)-$RANDOM"
  [[ "$MODE" != dry-run ]] || id="smoke"
  # Cloud Run answers 403 until it knows of a role that was given just now.
  for turn in {1..24}; do
    web POST "$api/v1/tasks" "{\"id\": \"$id\", \"owner\": \"$NAME-smoke-test\", \"title\": \"Smoke test\", \
\"handler\": \"$SMOKE_HANDLER\", \"payload\": $SMOKE_PAYLOAD}"
    [[ "$WEB_STATUS" == 403 ]] || break
    ((turn == 24)) || sleep "$((5 * ${PATIENCE:-1}))"
  done
  need_200 "The api did not take a task"
  web POST "$api/v1/tasks/$id/trigger"
  need_200 "The api did not trigger the task"
  for turn in {1..60}; do
    web GET "$api/v1/tasks/$id/executions"
    [[ "$MODE" != dry-run ]] || break
    state="$(field executions.0.status <<<"$WEB_BODY")"
    [[ "$state" != SUCCEEDED && "$state" != FAILED ]] || break
    ((turn == 60)) || sleep "$((2 * ${PATIENCE:-1}))"
  done
  execution="$WEB_BODY"
  web DELETE "$api/v1/tasks/$id"
  [[ "$MODE" == dry-run || "$state" == SUCCEEDED ]] || die "The task did not run: it is '${state:-not begun}' after two \
minutes. ${execution} See docs/operations.md, \"A task did not run\"."
  [[ "$MODE" == dry-run ]] || say "It ran: $state."
}
