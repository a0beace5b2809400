# The quota of Cloud Run: new projects have 20 vCPU and 40 GiB in a region, and a revision is refused whose maximum of
# instances could use more. Nothing is built before that is known.
# shellcheck shell=bash disable=SC2034,SC2153 # variables set here are used elsewhere, and the other way round

# require_quota: refuse instances that the project's quota does not allow, and print values that it does.
require_quota() {
  local allowed cpu memory
  [[ "$MODE" != check ]] || return 0
  request GET "https://serviceusage.googleapis.com/v1beta1/projects/$PROJECT_NUMBER/services/run.googleapis.com/consumerQuotaMetrics"
  [[ "$MODE" != dry-run ]] || return 0
  allowed=""
  [[ "$RESPONSE_STATUS" != 200 ]] || allowed="$(python3 -c '
import json, sys
limits = {}
for metric in json.load(sys.stdin).get("metrics", []):
    buckets = [each for limit in metric.get("consumerQuotaLimits", []) for each in limit.get("quotaBuckets", [])]
    by_region = {each.get("dimensions", {}).get("region", ""): int(each.get("effectiveLimit", -1)) for each in buckets}
    found = by_region.get(sys.argv[1], by_region.get("", -1))
    limits[metric["metric"].rpartition("/")[2]] = found
cpu, memory = limits.get("cpu_allocation", -1), limits.get("mem_allocation", -1)
print(cpu, memory)' "$REGION" <<<"$RESPONSE_BODY")"
  read -r cpu memory <<<"${allowed:--1 -1}"
  if ((cpu < 0 && memory < 0)); then
    log "The project's quota for Cloud Run cannot be read ($RESPONSE_STATUS). If it is too small, a deployment says so."
    return 0
  fi
  compare_quota "$cpu" "$memory" || exit 1
}

# explain_quota ERROR: print values that fit, if Cloud Run has refused a revision for its quota.
explain_quota() {
  local cpu=-1 memory=-1
  [[ ! "$1" =~ CpuAllocPerProjectRegion\ requested:\ [0-9]+\ allowed:\ ([0-9]+) ]] || cpu="${BASH_REMATCH[1]}"
  [[ ! "$1" =~ MemAllocPerProjectRegion\ requested:\ [0-9]+\ allowed:\ ([0-9]+) ]] || memory="${BASH_REMATCH[1]}"
  ((cpu < 0 && memory < 0)) || compare_quota "$cpu" "$memory" || true
}

# compare_quota MILLI-VCPU BYTES: print values that fit, and fail, if the configuration's do not. -1 is no limit.
compare_quota() {
  local queue arguments=("execute=$EXECUTE_MAX_INSTANCES" "api=$API_MAX_INSTANCES")
  [[ "$PUBLIC_LINKS" != yes ]] || arguments+=("links=$LINKS_MAX_INSTANCES")
  arguments+=(--)
  for queue in "${QUEUES[@]}"; do arguments+=("$queue=$(get QUEUE_LIMITS "$queue")"); done
  python3 "$INFRA/lib/quota.py" "$1" "$2" "$MEMORY" "$EXECUTE_CONCURRENCY" "${arguments[@]}" >&8
}
