# Which files of the functions folder are deployed.
# shellcheck shell=bash

# list_source_files FOLDER [PATTERN…]: print the files to deploy, each ending in a zero byte: Python files,
# requirements.txt, and files that match a glob pattern. Symbolic links, hidden files, caches and virtual environments
# are never deployed, so that a key or an environment in the folder does not end up in the cloud.
list_source_files() {
  local folder="$1" pattern deployed=(-name '*.py' -o -path ./requirements.txt)
  for pattern in "${@:2}"; do
    deployed+=(-o -path "./${pattern#./}")
  done
  find_in_source_folders "$folder" -type f -not -name '.*' \( "${deployed[@]}" \) -print0
}

# Print the other files and links in those folders, each ending in a zero byte.
list_other_files() {
  comm -z -23 <(find_in_source_folders "$1" -not -type d -print0 | sort -z) <(list_source_files "$@" | sort -z)
}

# find_in_source_folders FOLDER EXPRESSION…: run `find`, without the folders that never hold source files.
find_in_source_folders() {
  local folder="$1"
  shift
  (cd "$folder" && find . -mindepth 1 \
    -type d \( -name '.*' -o -name __pycache__ -o -name node_modules -o -name site-packages \
    -o -exec test -e '{}/pyvenv.cfg' \; \) -prune -o \
    "$@")
}
