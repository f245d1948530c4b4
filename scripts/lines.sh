#!/usr/bin/env bash
# lines.sh [COMMIT]: counts the lines of Go in the working tree and in COMMIT (default HEAD), without dev, bench and tests, and prints both with
# the difference.
set -euo pipefail
cd "$(dirname "$0")/.."
commit=${1:-HEAD}

# count ARGUMENTS: the number of lines of the files that `git grep` finds with the arguments.
count() { git grep -c "$@" -- '*.go' ':!*_test.go' ':!dev/' ':!bench/' | awk -F: '{n += $NF} END {print n + 0}'; }

before=$(count '' "$commit")
after=$(count --untracked '')
printf '%7d  %s\n%7d  working tree\n%+7d\n' "$before" "$(git rev-parse --short "$commit")" "$after" "$((after - before))"
