#!/usr/bin/env bash
# every.sh WORDS COMMAND...: runs COMMAND. While it runs, every.sh prints the output of the shell command WORDS and the time so far, after
# five seconds and then every ten.
set -euo pipefail
words=$1
shift
(
  trap 'kill "$(jobs -p)" 2>/dev/null' EXIT
  pause=5
  while sleep "$pause" & wait $!; do
    printf '… %s, %d s\n' "$(bash -c "$words")" "$SECONDS" >&2
    pause=10
  done
) &
trap 'kill '"$!"' 2>/dev/null || true' EXIT
"$@"
