#!/usr/bin/env bash
# fuzz.sh DURATION: runs every fuzz target of the root module for DURATION, one after another.
set -euo pipefail
cd "$(dirname "$0")/.."
duration=${1:-10s}
grep -rnoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed -E 's#^(.*)/[^/]*:[0-9]+:func #\1 #' | sort |
  while read -r folder target; do
    [[ $folder == ./dev* ]] && continue
    scripts/say.sh "fuzz: $folder $target for $duration"
    go test "$folder" -run '^$' -fuzz "^$target\$" -fuzztime "$duration" -fuzzminimizetime 1s </dev/null
  done
