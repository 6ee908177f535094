// SPDX-License-Identifier: Apache-2.0
// RC220 to RC222, RC301: the division of a step's batch into microbatches and over ranks.
#pragma once
#include <rankc/rules/values/setting.hpp>

namespace rankc {

namespace detail {

/// Sequences of a microbatch on all ranks, rounded down.
constexpr long long sequences(const batch_sizes& b) { return b.global_batch / at_least_one(b.microbatches); }

constexpr bool cuts(const setting& s) {
  const batch_sizes& b = s.batch;
  if (b.global_batch < 1) return true;
  const long long ranks = batch_ranks(s.dims);
  return b.global_batch % at_least_one(b.microbatches) == 0 && sequences(b) % ranks == 0 &&
         (b.microbatch <= 0 || sequences(b) / ranks == b.microbatch);
}

inline constexpr rule batch_rules[]{
    // RC220
    {220, [](const setting& s) { return s.batch.seq >= 1; },
     [](sentence& t, const setting& s) { t << "seq=" << s.batch.seq << "; a sequence has at least 1 token"; },
     no_offers},
    {220, [](const setting& s) { return s.batch.global_batch >= 1; },
     [](sentence& t, const setting& s) {
       t << "global_batch=" << s.batch.global_batch << "; a step has at least 1 sequence";
     },
     [](search& a) { a.vary(&batch_sizes::global_batch); }},
    {220, [](const setting& s) { return s.batch.microbatch >= 0; },
     [](sentence& t, const setting& s) {
       t << "microbatch=" << s.batch.microbatch << "; a microbatch has at least 1 sequence";
     },
     [](search& a) { a.vary(&batch_sizes::microbatch); }},
    // RC301
    {301, [](const setting& s) { return s.batch.microbatches >= 1; },
     [](sentence& t, const setting& s) {
       t << "microbatches=" << s.batch.microbatches << "; a step has at least 1";
     },
     no_offers},
    // RC222
    {222,
     [](const setting& s) {
       return s.batch.seq < 1 ||
              static_cast<long long>(s.batch.global_batch) * s.batch.seq <= std::numeric_limits<int>::max();
     },
     [](sentence& t, const setting& s) {
       t << "a step has " << static_cast<long long>(s.batch.global_batch) * s.batch.seq
         << " tokens; they are counted up to " << std::numeric_limits<int>::max();
     },
     [](search& a) { a.vary(&batch_sizes::global_batch); }},
    // RC221
    {221, cuts,
     [](sentence& t, const setting& s) {
       t << "global_batch=" << s.batch.global_batch << " does not divide into " << s.batch.microbatches
         << " microbatches";
       if (s.batch.microbatch > 0) t << " of " << s.batch.microbatch;
       t << " on " << batch_ranks(s.dims) << " data-parallel ranks";
     },
     [](search& a) {
       a.vary(&batch_sizes::global_batch).vary(&batch_sizes::microbatches);
       if (a.written().batch.microbatch > 0) a.vary(&batch_sizes::microbatch);
     }},
};

}  // namespace detail

/// Appends the faults of a batch with these dims, as written.
/// Errors: RC220 to RC222, RC301.
constexpr void check_batch(report& out, const batch_sizes& batch, const parallel_dims& given) {
  check(out, setting{.given = given, .batch = batch}, detail::batch_rules);
}

}  // namespace rankc
