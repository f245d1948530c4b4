#!/usr/bin/env bash
# mutate.sh [WORD]: disables the guards of scripts/mutations.tsv one by one and checks that a test fails each time; with WORD, only
# the guards whose line contains it. The working tree is not touched. Tests of the store need a database, which `make mutate` provides.
set -euo pipefail
cd "$(dirname "$0")/.."
word=${1:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
caught=0 wrong=0

# fail MESSAGE: counts a guard that is not tested, or a line of the list that is out of date.
fail() {
  echo "WRONG   $*"
  wrong=$((wrong + 1))
}

# A tab is white space for read, which would skip an empty field.
while IFS=$'\037' read -r file old new package tests; do
  [[ -z $file || $file == \#* ]] && continue
  what="$file: $old -> $new"
  [[ $what == *"$word"* ]] || continue
  found=$(OLD=$old perl -0ne 'print scalar(() = /\Q$ENV{OLD}\E/g)' "$file")
  if [[ $found != 1 ]]; then
    fail "$what: the file contains the text $found times"
    continue
  fi
  OLD=$old NEW=$new perl -0pe 's/\Q$ENV{OLD}\E/$ENV{NEW}/' "$file" >"$work/mutated.go"
  printf '{"Replace": {"%s": "%s"}}' "$PWD/$file" "$work/mutated.go" >"$work/overlay.json"
  if [[ $file == *.go ]] && ! go build -o /dev/null -overlay "$work/overlay.json" "./$(dirname "$file")" >"$work/out" 2>&1; then
    fail "$what: it does not compile: $(tail -n 1 "$work/out")"
  elif go test -overlay "$work/overlay.json" -count=1 -timeout 20m -run "$tests" "$package" >"$work/out" 2>&1; then
    fail "$what: no test of $package ($tests) fails"
  elif ! grep -q '^ *--- FAIL' "$work/out"; then
    fail "$what: the tests of $package do not run: $(tail -n 1 "$work/out")"
  else
    echo "caught  $what: $(grep -m 1 -o -- '--- FAIL: [^ ]*' "$work/out" | cut -d ' ' -f 3)"
    caught=$((caught + 1))
  fi
done < <(tr '\t' '\037' <scripts/mutations.tsv)

echo "$caught guards are tested, $wrong lines are wrong"
[[ $wrong == 0 && $caught -gt 0 ]]
