# HTTP calls for which gcloud has no command: the Firebase Rules API, and cloudsched's own API.
# shellcheck shell=bash

RESPONSE_STATUS=0
RESPONSE_BODY=""
API_TOKEN_COMMAND=() # the command that prints a token for the API; set by `grant_smoke_access`
API_TOKEN=""   # that token, which is valid for an hour

# request METHOD URL [JSON]: sets RESPONSE_STATUS and RESPONSE_BODY. The token never appears in an argument list.
#
# A request to the API carries its token twice: Cloud Run verifies the one in X-Serverless-Authorization and leaves the
# signature of the other one intact. The same request therefore works while the API is private, public, or changing.
request() {
  local command=(curl --silent --show-error --max-time 60 --request "$1" --header "Content-Type: application/json")
  local token="" header headers=(Authorization) token_command=(gcloud auth print-access-token)
  if [[ "$2" == https://*.googleapis.com/* ]]; then
    command+=(--header "X-Goog-User-Project: $PROJECT")
  else
    headers+=(X-Serverless-Authorization) token_command=("${API_TOKEN_COMMAND[@]}")
  fi
  [[ -z "${3-}" ]] || command+=(--data-binary "$3")
  command+=("$2")
  if [[ "$MODE" == dry-run ]]; then
    printf '%s' "$(quote_command "${command[@]}")"
    # shellcheck disable=SC2016 # printed for the user to type, not expanded here
    for header in "${headers[@]}"; do printf ' --header "%s: Bearer $(%s)"' "$header" "$(quote_command "${token_command[@]}")"; done
    printf '\n'
    RESPONSE_STATUS=0 RESPONSE_BODY=""
    return
  fi
  if ((${#headers[@]} == 1)); then
    token="$("${token_command[@]}")"
  else
    # The right to make such a token was granted a moment ago.
    [[ -n "$API_TOKEN" ]] || API_TOKEN="$(retry_for "$IAM_PROPAGATION_SECONDS" "${token_command[@]}")"
    token="$API_TOKEN"
  fi
  local delay
  for delay in "${READY_DELAYS[@]}" ""; do
    send "${command[@]}" \
      --config <(for header in "${headers[@]}"; do printf 'header = "%s: Bearer %s"\n' "$header" "$token"; done)
    [[ "$RESPONSE_STATUS" == 403 && -n "$delay" && -n "$ARE_SERVICES_ON" && "$2" == https://*.googleapis.com/* ]] || break
    is_service_off "$RESPONSE_BODY" || break
    log "  … Google does not know of an API yet; retrying in $delay s"
    sleep "$delay"
  done
}

# request_anonymously METHOD URL: like `request`, but without any token.
request_anonymously() {
  local command=(curl --silent --show-error --max-time 60 --request "$1" "$2")
  if [[ "$MODE" == dry-run ]]; then
    quote_command "${command[@]}"
    return
  fi
  send "${command[@]}"
}

# send CURL…: run curl, and set RESPONSE_STATUS, which is 0 if there was no answer, and RESPONSE_BODY.
send() {
  local answer status=0
  answer="$("$@" --write-out '\n%{http_code}')" || status=$?
  RESPONSE_STATUS="${answer##*$'\n'}" RESPONSE_BODY="${answer%$'\n'*}"
  ((status == 0)) || RESPONSE_STATUS=0
}

# get_json_field PATH < JSON: print a field, or nothing if there is none. Numbers in the path are array indices.
get_json_field() {
  python3 -c '
import json, sys
value = json.load(sys.stdin)
for key in sys.argv[1].split("."):
    value = value[int(key)] if isinstance(value, list) and len(value) > int(key) else value.get(key, "") if isinstance(value, dict) else ""
print(value, end="")' "$1"
}

RULES_API="https://firebaserules.googleapis.com/v1"

# Set RELEASE, the name under which the database's rules are released, RULESET, which is empty if there are none, and
# RELEASED_RULES, their text.
find_rules() {
  RELEASE="projects/$PROJECT/releases/cloud.firestore" RULESET="" RELEASED_RULES=""
  [[ "$DATABASE" == "(default)" ]] || RELEASE+="/$DATABASE"
  request GET "$RULES_API/$RELEASE"
  case "$RESPONSE_STATUS" in
    200)
      RULESET="$(get_json_field rulesetName <<<"$RESPONSE_BODY")"
      request GET "$RULES_API/$RULESET"
      RELEASED_RULES="$(get_json_field source.files.0.content <<<"$RESPONSE_BODY")"
      ;;
    0 | 404) ;;
    *) is_service_off "$RESPONSE_BODY" || die "The Firebase Rules API answered $RESPONSE_STATUS: $RESPONSE_BODY" ;;
  esac
}

# Print what is to be said of rules that these scripts did not release, if they may not be replaced.
describe_foreign_rules() {
  [[ "$RULES" == deploy && -z "$COLLECTION_PREFIX" ]] || return 0
  find_rules
  [[ -z "$RULESET" || "$RELEASED_RULES" == "$(<"$INFRA/firestore.rules")" ]] || is_managed rules ||
    printf 'rules of its own (RULES=keep leaves them, RULES=replace replaces them)\n'
}

# Refuse rules of an app that hold for each collection, and so for those of tasks, too.
require_narrow_rules() {
  local wide='match[[:space:]]+(/databases/\{[^}]+\}/documents)?(/\{[^}]+\})+[[:space:]]*\{'
  [[ "$RULES" == deploy && -n "$COLLECTION_PREFIX" ]] || return 0
  find_rules
  [[ ! "$RELEASED_RULES" =~ $wide ]] || die "The rules of database $DATABASE have a block for all collections \
(${BASH_REMATCH[0]}), and nothing was changed. Whoever may read or write there could read or change everybody's tasks. Restrict \
it to your own collections. If it allows nothing, set RULES=keep."
}

# Release firestore.rules, unless the database has rules that these scripts did not release.
release_rules() {
  log_step "Firestore rules"
  [[ "$RULES" != keep ]] || return 0
  local body
  find_rules
  if [[ -n "$COLLECTION_PREFIX" ]]; then
    show_rules
    return
  fi
  [[ -z "$RULESET" || "$RELEASED_RULES" != "$(<"$INFRA/firestore.rules")" ]] || return 0
  [[ -z "$RULESET" || "$RULES" == replace ]] || is_managed rules ||
    die "Database $DATABASE has rules that these scripts did not release. Merge \
infra/firestore.rules into them and set RULES=keep, or replace them with RULES=replace."
  if [[ "$MODE" == check ]]; then
    CHANGES=$((CHANGES + 1))
    printf 'differs: release firestore.rules\n'
    return
  fi
  mark_managed rules
  take_lock
  CHANGES=$((CHANGES + 1))
  log "release firestore.rules"
  body="$(python3 -c '
import json, sys
content = open(sys.argv[1], encoding="utf-8").read()
print(json.dumps({"source": {"files": [{"name": "firestore.rules", "content": content}]}}))' "$INFRA/firestore.rules")"
  request POST "$RULES_API/projects/$PROJECT/rulesets" "$body"
  require_success "The Firebase Rules API rejected the rules"
  body="{\"name\": \"$RELEASE\", \"rulesetName\": \"$(get_json_field name <<<"${RESPONSE_BODY:-"{}"}")\"}"
  if [[ -n "$RULESET" ]]; then
    request PATCH "$RULES_API/$RELEASE" "{\"release\": $body}"
  else
    request POST "$RULES_API/projects/$PROJECT/releases" "$body"
  fi
  require_success "The Firebase Rules API did not release the rules"
}

# Print what an app's own rules lack, so that its clients can have live lists: a block beside its own, with functions apart.
show_rules() {
  [[ "$RELEASED_RULES" != *"/${COLLECTION_PREFIX}tasks/"* ]] || return 0
  log "The rules of database $DATABASE are your app's, and stay as they are. For live lists in clients, add this to them, inside
\`service cloud.firestore { … }\`, beside your own block. RULES=keep ends this message.

$(print_rules)"
}

# Print the block of firestore.rules, with the collections' prefix.
print_rules() {
  sed -nE -e "s#/([a-z]+)/([{\$])#/$COLLECTION_PREFIX\\1/\\2#g; s#/${COLLECTION_PREFIX}databases/#/databases/#g" \
    -e '/^  match /,/^  }/p' "$INFRA/firestore.rules"
}

require_success() { [[ "$MODE" == dry-run || "$RESPONSE_STATUS" == 20? ]] || die "$1: $RESPONSE_STATUS $RESPONSE_BODY"; }
