// SPDX-License-Identifier: Apache-2.0
// The legal alternatives that a refusal offers: the legal values nearest to the written one, found by asking
// the rule itself.
#pragma once
#include <rankc/base/diagnostic.hpp>
#include <rankc/mesh/dims.hpp>

#include <utility>

namespace rankc {

/// Up to two values of a field, in ascending order.
struct nearest_values {
  int value[2]{};
  int count = 0;
  bool absorbed = false;  // a degree: legal only if the data-parallel degree is inferred
  constexpr void add(int v) {
    value[count++] = v;
    if (count == 2 && value[0] > value[1]) std::swap(value[0], value[1]);
  }
};

/// Searches outward from the written value, in 1 to `highest`, for values that `legal(int)` accepts.
constexpr nearest_values find_nearest(int written, int highest, auto legal) {
  constexpr int reach = 4096;  // limits the compile time if nothing is legal
  int from = written;
  if (written < 1) from = 0;
  else if (written > highest) from = highest + 1;
  nearest_values out;
  for (int step = 1; step <= reach && out.count < 2; ++step) {
    if (from > step && legal(from - step)) out.add(from - step);
    if (out.count < 2 && from <= highest - step && legal(from + step)) out.add(from + step);
  }
  return out;
}

constexpr std::string_view name_of(int parallel_dims::* degree) {
  for (const named_degree& a : all_degrees)
    if (a.degree == degree) return a.name;
  return "world";
}

/// The data-parallel degree that compensates for the change of another degree.
constexpr int parallel_dims::* absorber(const parallel_dims& d) {
  return d.dp_shard != 1 && d.dp_replicate == 1 ? &parallel_dims::dp_shard : &parallel_dims::dp_replicate;
}

/// The nearest values of a degree, or of the world, with which the degrees multiply to the world and
/// `legal(resolved dims)` is true. The other degrees stay as written. Without `exact` the data-parallel
/// degree may also be inferred.
constexpr nearest_values find_nearest_degree(const parallel_dims& given, int parallel_dims::* degree,
                                             bool exact, auto legal) {
  const parallel_dims resolved = resolve(given);
  const auto absorbing = absorber(given);
  const bool is_world = degree == &parallel_dims::world;
  // True if the data-parallel degree may not absorb the change: with `exact`, if it is the changed degree, or
  // if another degree is inferred and absorbs it.
  bool fixed = exact || degree == absorbing;
  for (const named_degree& a : all_degrees)
    fixed |= a.degree != degree && spans_world(given, a) && given.*a.degree == infer;
  bool absorbed = false;
  nearest_values out = find_nearest(resolved.*degree, is_world ? 1 << 30 : given.world, [&](int v) {
    if (!is_world && spans_world(given, degree) && given.world % v) return false;
    parallel_dims d = given;
    d.*degree = v;
    d = resolve(d);
    if (factors_world(d)) return legal(d);
    if (fixed) return false;
    d = resolved;
    d.*degree = v;
    d.*absorbing = infer;
    d = resolve(d);
    if (!factors_world(d) || !legal(d)) return false;
    absorbed = true;
    return true;
  });
  out.absorbed = absorbed;
  return out;
}

/// The alternatives at the end of a sentence: ": take tp=2 or tp=4 (with dp_replicate=infer), or heads=8".
class offers {
 public:
  constexpr void add(std::string_view name, const nearest_values& v) {
    for (int i = 0; i < v.count; ++i) (i ? text_ << " or " : next()) << name << "=" << v.value[i];
  }
  constexpr void add_degree(const parallel_dims& given, int parallel_dims::* degree,
                            const nearest_values& v) {
    add(name_of(degree), v);
    if (v.absorbed) text_ << " (with " << name_of(absorber(given)) << "=infer)";
  }
  /// Starts another alternative, which the caller writes in words.
  constexpr sentence& next() { return text_ << (text_.empty() ? ": take " : ", or "); }
  constexpr std::string_view view() const { return text_.view(); }

 private:
  sentence text_;
};

}  // namespace rankc
