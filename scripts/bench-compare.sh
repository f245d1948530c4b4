#!/usr/bin/env bash
# bench-compare.sh COMMIT [FIGURES [ROUNDS]]: measures FIGURES (default p1,p2,p4,c1) of an older commit and of the working tree in turns,
# ROUNDS times each (default 5), each with its own servers, and prints a table of medians. Run it on a machine that does nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."
commit=${1:?name the commit to compare with} figures=${2:-p1,p2,p4,c1} rounds=${3:-5}
work=$(mktemp -d)
trap 'git worktree remove --force "$work/before"; rm -rf "$work"' EXIT
git worktree add --quiet --detach "$work/before" "$commit"

# build TREE NAME: builds the benchmarks of a tree and the program that starts their servers.
build() {
  scripts/say.sh "building $2" >&2
  (cd "$1" && make --silent jig-dev && go build -o "$work/bench-$2" ./bench) >&2
  cp "$1/.cache/bin/jig-dev" "$work/jig-dev-$2"
}
build "$work/before" before
build . after

for ((round = 1; round <= rounds; round++)); do
  for side in before after; do
    scripts/say.sh "round $round of $rounds: $side"
    "$work/jig-dev-$side" --ephemeral --no-worker --no-ui --temporal-addr 127.0.0.1:0 --pg-port 0 --pg-setting wal_level=replica,max_wal_size=2GB -- \
      "$work/bench-$side" -only "$figures" -pairs 2 | sed "s/^/$side\t$round\t/" >>"$work/rows"
  done
done

# A row is "| id | figure | target | jig | baseline | ratio | verdict |"; the values of jig and of the baseline begin with a number. Rows are
# matched by id and order, because the words may have changed between the commits.
awk -F'\t' '
  function median(list, n, i, j, t) {
    n = split(list, v, " ")
    for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j] + 0 < v[j-1] + 0; j--) { t = v[j]; v[j] = v[j-1]; v[j-1] = t }
    return n % 2 ? v[(n+1)/2] : (v[n/2] + v[n/2+1]) / 2
  }
  $3 ~ /^\| [A-Z][0-9]+ \|/ {
    split($3, cell, / *\| */); split(cell[5], value, " "); split(cell[6], base, " ")
    row = cell[2] SUBSEP (++nth[$1, $2, cell[2]])
    if (!(row in name)) order[++rows] = row
    name[row] = cell[2] " | " cell[3]
    unit[row] = value[2] ~ /^\(/ ? "" : " " value[2]
    jig[$1, row] = jig[$1, row] " " value[1]
    b0[$1, row] = b0[$1, row] " " base[1]
  }
  END {
    print "| id | figure | before | after | after / before | baseline before | baseline after |"
    print "| --- | --- | --- | --- | --- | --- | --- |"
    for (r = 1; r <= rows; r++) {
      k = order[r]; was = median(jig["before", k]); is = median(jig["after", k])
      printf "| %s | %s%s | %s%s | %s | %s | %s |\n", name[k], was, unit[k], is, unit[k], was + 0 ? sprintf("%.2f", is / was) : "–", median(b0["before", k]), median(b0["after", k])
    }
  }' "$work/rows"
