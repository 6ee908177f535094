#!/bin/sh
# Prints the compile cost of plans: user seconds (best of three) and peak memory of -fsyntax-only, for each compiler.
#   tests/bench/compile_time.sh [compiler...]      default: g++ clang++-19
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
[ $# -gt 0 ] || set -- g++ clang++-19

# Headers that most files include anyway.
printf '#include <%s>\n' array span string string_view vector > "$work/a few standard headers.cpp"
echo '#include <rankc/rankc.hpp>' > "$work/header alone.cpp"
for plan in "$root"/dsl/plans/[0-9]*.hpp; do
  echo "#include \"$plan\"" > "$work/$(basename "$plan" .hpp).cpp"
done
# 1,024 ranks, 80 layers: 16 stages with the actions of all their microbatches.
for microbatches in 128 512; do
  cat > "$work/llama 80 layers, 1024 ranks, pp 16 x $microbatches.cpp" <<PLAN
#include <rankc/rankc.hpp>
using namespace rankc;
inline constexpr models::llama model{.layers = 80, .hidden = 8192, .heads = 64, .kv_heads = 8, .ffn = 28672, .vocab = 128256};
inline constexpr plan large{.model = model,
                            .dims = parallel_dims{.world = 1024, .dp_replicate = infer, .tp = 8, .pp = 16, .sequence_parallel = true},
                            .schedule = schedules::one_f_one_b{.microbatches = $microbatches},
                            .recipe = training{.seq = 8192, .global_batch = 8 * $microbatches},
                            .cluster = clusters::h200<128>};
static_assert(valid<large>);
PLAN
done

# The same world with four faults: the cost of finding alternatives.
cat > "$work/llama 80 layers, 1024 ranks, refused.cpp" <<PLAN
#include <rankc/rankc.hpp>
using namespace rankc;
inline constexpr models::llama model{.layers = 12, .hidden = 8192, .heads = 60, .kv_heads = 7, .ffn = 28672, .vocab = 128255};
inline constexpr plan large{.model = model,
                            .dims = parallel_dims{.world = 1024, .dp_replicate = infer, .tp = 8, .pp = 16, .sequence_parallel = true},
                            .schedule = schedules::one_f_one_b{.microbatches = 128},
                            .recipe = training{.seq = 8192, .global_batch = 1000},
                            .cluster = clusters::h200<120>};
static_assert(!valid<large>);
PLAN

for compiler in "$@"; do
  case $compiler in
    *clang*) limit=-fconstexpr-steps=2147483647 ;;
    *) limit=-fconstexpr-ops-limit=2147483647 ;;
  esac
  printf '%-48s %8s %8s\n' "$compiler" 'user s' 'MB'
  for source in "$work"/*.cpp; do
    for _ in 1 2 3; do
      /usr/bin/time -f '%U %M' "$compiler" -std=c++20 "$limit" -I"$root/dsl" -I"$root/runtime" -fsyntax-only "$source" 2>&1
    done | sort -n | head -n 1 | while read -r seconds kilobytes; do
      printf '%-48s %8s %8s\n' "$(basename "$source" .cpp)" "$seconds" $((kilobytes / 1024))
    done
  done
done
