#!/usr/bin/env bash
# Build the source folder to deploy: your functions, plus cloudsched. A requirements.txt that pins a version
# (cloudsched==1.2.3) gets that one from the index; otherwise cloudsched is packed as a wheel built from this checkout, so
# that you deploy exactly the code you tested. Every dependency is pinned to the version that pip resolves now, with the
# hashes of its files here and for RUNTIME (python312); sbom.cdx.json lists them. `.python-version` tells every builder that
# Python: one that takes the newest would refuse the files that were pinned for another.
#
# Usage: infra/build-source.sh FUNCTIONS_DIR OUTPUT_DIR [PATTERN…]
#
# Only Python files, requirements.txt and files that match a glob pattern (such as 'templates/*.html') are packed. Hidden
# files, symbolic links, caches and virtual environments never are.
set -euo pipefail

functions="${1:?the folder that contains main.py}"
output="${2:?the folder to create}"
patterns=("${@:3}")
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
# shellcheck source=lib/source.sh
source "$root/infra/lib/source.sh"
python="$(command -v "${PYTHON:-python3}")"
python="$(cd "$(dirname "$python")" && pwd)/$(basename "$python")"

rm -rf "$output"
mkdir -p "$output"
while IFS= read -r -d '' file; do
  install -D -m 644 "$functions/$file" "$output/$file"
done < <(list_source_files "$functions" "${patterns[@]}")
while IFS= read -r -d '' file; do
  printf 'not packed: %s\n' "${file#./}" >&2
done < <(list_other_files "$functions" "${patterns[@]}")
[[ -f "$output/main.py" && -f "$output/requirements.txt" ]] || {
  printf 'error: %s must contain main.py and requirements.txt\n' "$functions" >&2
  exit 1
}

pinned='^cloudsched *(\[[^]]*\])? *== *([0-9][A-Za-z0-9.+!]*) *(#.*)?$'
if grep -qiE "$pinned" "$output/requirements.txt"; then
  own=""
  what="cloudsched $(sed -nE "s/$pinned/\2/Ip" "$output/requirements.txt") of the index"
else
  "$python" -m pip wheel "$root" --quiet --no-deps --wheel-dir "$output"
  what="$(basename "$output"/cloudsched-*.whl)"
  own="./$what"
  sed -E -i "s#^cloudsched *(\[[^]]*\])?([^][A-Za-z0-9._-].*)?\$#$own\1#I" "$output/requirements.txt" # keeps its extras
  grep -qF "$own" "$output/requirements.txt" || printf '%s\n' "$own" >>"$output/requirements.txt"
fi

runtime="${RUNTIME:-python312}"
version="3.${runtime#python3}"
printf '%s\n' "$version" >"$output/.python-version"

# The files for the functions' runtime: Linux on x86-64, with the Python of RUNTIME.
target=(--only-binary=:all: --target=. --implementation=cp --python-version="$version")
for platform in manylinux_2_{28,17,12,5}_x86_64 manylinux1_x86_64 linux_x86_64; do
  target+=(--platform="$platform")
done
(
  cd "$output"
  pip=("$python" -m pip install --quiet --disable-pip-version-check --dry-run --ignore-installed)
  "${pip[@]}" --report pins.json --requirement requirements.txt
  "$python" "$root/infra/lib/pins.py" list "$own" pins.json >wheels.txt
  reports=(pins.json)
  if [[ ! -s wheels.txt ]] || "${pip[@]}" --no-deps "${target[@]}" --report target.json --requirement wheels.txt >&2; then
    [[ -s wheels.txt ]] || cp pins.json target.json
    reports+=(target.json)
  fi
  "$python" "$root/infra/lib/pins.py" write "$own" "${reports[@]}"
  rm -f pins.json target.json wheels.txt
)
printf 'Built %s with %s\n' "$output" "$what"
