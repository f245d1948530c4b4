#!/usr/bin/env bash
# release-check.sh ARCHIVE: unpacks a release for this machine, and runs the first steps of its README in an empty folder. The programs find nothing
# but themselves, a shell and a few commands of the system on PATH: no Go, no Node.js and no clone. PostgreSQL comes from where jig-dev finds or
# downloads it.
set -euo pipefail
archive=$(realpath "$1")
work=$(mktemp -d /tmp/jig-release-XXXXXX)
servers=
finish() {
  if [[ -n $servers ]] && kill -TERM "$servers" 2>/dev/null; then wait "$servers" || true; fi
  rm -rf "$work"
}
trap finish EXIT
chmod 755 "$work"
mkdir "$work/bin" "$work/home" "$work/first"
for command in bash cat env id ls mkdir sh uname; do
  ln -s "$(command -v "$command")" "$work/bin/$command"
done
(cd "$(dirname "$archive")" && sha256sum --check --ignore-missing SHA256SUMS)
tar --extract --file "$archive" --directory "$work"
release=$(dirname "$(ls -d "$work"/*/jig)")
cd "$work/first"
# In the folder of a release, and with nothing of this shell.
clean=(env -i "HOME=$work/home" "PATH=$release:$work/bin" USER=ana "$work/bin/bash" -c)

# block LANGUAGE N: the N-th block of code in a language in the section "Try it" of the README.
block() {
  awk -v fence="\`\`\`$1" -v wanted="$2" '
    /^## / {on = ($0 == "## Try it")}
    on && $0 == fence {n++; inside = 1; next}
    $0 == "```" {inside = 0}
    inside && n == wanted' "$release/README.md"
}

# fail MESSAGE: prints what is wrong, with the output of jig-dev, and ends.
fail() {
  echo "release-check.sh: $*" >&2
  cat "$work/servers" >&2
  exit 1
}

version=$("${clean[@]}" 'jig version')
echo "$version"
[[ $version == "jig v$(basename "$archive" | cut -d _ -f 2) "* ]] || fail "the program has another version than the archive"
start=$(block sh 1)
[[ $start == jig-dev ]] || fail "the first block of the README starts jig-dev"
"${clean[@]}" "exec $start --temporal-addr 127.0.0.1:0 --ui-addr 127.0.0.1:0 --http-addr 127.0.0.1:0 --pg-port 0" 2>"$work/servers" &
servers=$!
until grep -q "jig is ready" "$work/servers"; do
  kill -0 "$servers" 2>/dev/null || fail "jig-dev has ended"
  sleep 0.2
done
block markdown 1 >inventory.md
"${clean[@]}" "$(block sh 2)" || [[ $? == 3 ]] || fail "the session does not wait for an approval"
[[ ! -e reports/inventory.md ]] || fail "the file was written before anybody approved it"
"${clean[@]}" "set -e; $(block sh 3)" || fail "the approval fails"
cat reports/inventory.md
grep -q "inventory.md" reports/inventory.md || fail "the file is not the one that was approved"
"${clean[@]}" 'jig init shop --output json' | grep -q "\"version\":\"v" || fail "jig init writes no project for the released jig"
kill -TERM "$servers"
wait "$servers" || fail "jig-dev does not stop as it should"
servers=
echo "ok: the first steps of the README work with $(basename "$archive")"
