#!/bin/sh
# Prints the compile cost of each schedule's proof, as a plan completes it, at 512 microbatches on 16 and on 64 ranks:
# user seconds and peak memory of -fsyntax-only. "and times" also computes the makespan.
#   tests/bench/schedule_compile_time.sh [compiler...]      default: g++
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
[ $# -gt 0 ] || set -- g++

for compiler in "$@"; do
  case $compiler in
    *clang*) limit=-fconstexpr-steps=2147483647 ;;
    *) limit=-fconstexpr-ops-limit=2147483647 ;;
  esac
  printf '%-48s %8s %8s\n' "$compiler" 'user s' 'MB'
  for header in "$root"/dsl/rankc/schedules/*.hpp; do
    name=$(basename "$header" .hpp)
    case $name in best | from_csv) continue ;; esac  # best searches, for small numbers only; from_csv has no counts to choose
    for pp in 16 64; do
      for asked in '' ' and times'; do
        cat > "$work/proof.cpp" <<PROOF
#include <rankc/schedule/check.hpp>
#include <rankc/schedule/complete.hpp>
#include <rankc/schedule/timing.hpp>
#include <rankc/schedules/$name.hpp>
constexpr bool sound() {
  rankc::report refused;
  const rankc::action_table t = rankc::complete(rankc::schedules::$name{.microbatches = 512}, $pp);
  check_actions(refused, t);
  return refused.empty()${asked:+ && total(t).makespan >= lower_bound(t)};
}
static_assert(sound());
PROOF
        /usr/bin/time -f '%U %M' "$compiler" -std=c++20 "$limit" -I"$root/dsl" -I"$root/runtime" -fsyntax-only "$work/proof.cpp" 2>&1 |
          while read -r seconds kilobytes; do
            printf '%-48s %8s %8s\n' "$name, $pp x 512$asked" "$seconds" $((kilobytes / 1024))
          done
      done
    done
  done
done
