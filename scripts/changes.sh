#!/usr/bin/env bash
# changes.sh: applies the example changes in scripts/changes together, builds them, and runs the tests that they name. The working tree is not
# touched. Each patch begins with words for people and lines "test: PACKAGE REGEXP". CONTRIBUTING.md has a section that links to the patch and
# lists, in backticks at the beginning of lines, the files that it touches, without tests.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# fail MESSAGE: prints what is wrong with a patch and ends.
fail() {
  echo "changes.sh: $*" >&2
  exit 1
}

# touched PATCH: the files of a patch.
touched() { git apply --numstat "$1" | cut -f 3; }

# listed PATCH: the files that CONTRIBUTING.md lists for a patch.
listed() {
  awk -v link="($1)" '/^#/ {on = 0} index($0, link) {on = 1} on' CONTRIBUTING.md | sed -n 's/^- `\([^`]*\)`.*/\1/p' | sort
}

mkdir "$work/tree"
for patch in scripts/changes/*.patch; do
  for file in $(touched "$patch"); do
    if [[ -f $file && ! -f $work/tree/$file ]]; then
      mkdir -p "$work/tree/$(dirname "$file")"
      cp "$file" "$work/tree/$file"
    fi
  done
  (cd "$work/tree" && git apply -C1 "$OLDPWD/$patch") || fail "$patch does not apply: make the change again and write it with git diff"
  touched "$patch" | grep -v '_test\.go$' | sort >"$work/touched"
  listed "$patch" | diff -u --label CONTRIBUTING.md --label "$patch" - "$work/touched" || fail "$patch touches other files than CONTRIBUTING.md lists"
done

# Vet is off, because it cannot look into folders that only the overlay has.
# An overlay lets Go build the patched files, and only what depends on them, in place of those of the working tree.
(cd "$work/tree" && find . -type f | sed 's|^\./||') | awk -v from="$PWD" -v to="$work/tree" '
  {list = list (NR > 1 ? ", " : "") "\"" from "/" $0 "\": \"" to "/" $0 "\""} END {print "{\"Replace\": {" list "}}"}' >"$work/overlay.json"
go build -overlay "$work/overlay.json" ./...
sed -n 's/^test: //p' scripts/changes/*.patch >"$work/tests"
[[ -s $work/tests ]] || fail "no patch names a test"
while read -r package tests; do
  go test -vet=off -overlay "$work/overlay.json" -count=1 -timeout 10m -run "$tests" -v "$package" >"$work/out" 2>&1 || { cat "$work/out"; exit 1; }
  grep -q '^--- PASS' "$work/out" || fail "$package has no test $tests"
  echo "ok  $package $tests"
done <"$work/tests"
