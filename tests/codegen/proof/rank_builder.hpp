// SPDX-License-Identifier: Apache-2.0
// Builds the program of one rank op by op, and derives the waits that order its accesses: every read after
// the last write, every write after the reads before it. Waits that other waits imply are omitted.
#pragma once
#include <rankc/codegen/program.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace rankc::codegen::testing {

class rank_builder {
 public:
  static constexpr std::size_t block = 64;  // bytes; accesses are aligned to it

  explicit rank_builder(int streams) : streams_(streams), last_(streams, 0) {}

  /// A buffer of `blocks` blocks.
  access allocate(std::size_t blocks) {
    const access bytes{program_.arena_bytes, program_.arena_bytes + blocks * block, -1};
    program_.arena_bytes = bytes.end;
    uses_.resize(program_.arena_bytes / block, {-1, std::vector<int>(streams_, -1)});
    return bytes;
  }

  void issue(op o) {
    for (auto& w : o.writes)  // a range that an op reads and writes is changed in place
      for (std::size_t r = 0; r < o.reads.size(); ++r)
        if (o.reads[r].begin == w.begin && o.reads[r].end == w.end) w.replaces = static_cast<int>(r);
    const int index = static_cast<int>(program_.ops.size());
    std::vector<int> known = index == 0 ? std::vector<int>(streams_, -1) : ends_[last_[o.stream]];
    const auto after = [&](int other) {
      if (other < 0 || known[program_.ops[other].stream] >= other) return;
      o.waits.push_back(other);
      for (int s = 0; s < streams_; ++s) known[s] = std::max(known[s], ends_[other][s]);
    };
    each_block(o.reads, [&](use& u) { after(u.writer); });
    each_block(o.writes, [&](use& u) {
      after(u.writer);
      for (int reader : u.readers) after(reader);
    });
    each_block(o.reads, [&](use& u) { u.readers[o.stream] = index; });
    each_block(o.writes, [&](use& u) { u = {index, std::vector<int>(streams_, -1)}; });
    known[o.stream] = index;
    ends_.push_back(std::move(known));
    last_[o.stream] = index;
    program_.ops.push_back(std::move(o));
  }

  rank_program finish() { return std::move(program_); }

 private:
  struct use {
    int writer;
    std::vector<int> readers;  // since the writer: the last reader on each stream
  };
  template <class Each>
  void each_block(const std::vector<access>& accesses, Each each) {
    for (const auto& a : accesses)
      for (auto b = a.begin / block; b < a.end / block; ++b) each(uses_[b]);
  }

  int streams_;
  rank_program program_;
  std::vector<int> last_;  // the last op of each stream; at first the begin op
  // Per op and stream: the last op that is known to have ended when this one has.
  std::vector<std::vector<int>> ends_;
  std::vector<use> uses_;
};

}  // namespace rankc::codegen::testing
