#!/usr/bin/env bash
# build.sh PROGRAM FOLDER: builds the Go program in FOLDER as PROGRAM, and prints its progress if that takes long. Linking takes half as
# long without debugging information.
set -euo pipefail
program=$1 folder=$2
scripts=$(cd "$(dirname "$0")" && pwd)
output=$(mktemp)
trap 'rm -f "$output"' EXIT
cd "$scripts/../$folder"
# With -v, go names each package that it compiles on a line of its own.
words="echo build: \$(grep -c '^[^ #]*\$' '$output') packages of $(basename "$program") are compiled"
if ! "$scripts"/every.sh "$words" bash -c 'exec go build -v -ldflags "-s -w" -o "$1" . 2>"$2"' build "$program" "$output"; then
  grep -v '^[^ #]*$' "$output" >&2 || true
  exit 1
fi
