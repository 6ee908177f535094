// SPDX-License-Identifier: Apache-2.0
#include "other_processes.hpp"

#include <rankc/runtime/packed_times.hpp>

#include <cblas.h>

#include <mutex>

namespace rankc::runtime::host {
namespace {

/// The version as text: "OpenBLAS 0.3.21". The rest of the configuration differs by processor.
std::string openblas_version() {
  static std::mutex one_at_a_time;  // the library builds the text anew in one buffer each time
  const std::lock_guard lock(one_at_a_time);
  const std::string text = openblas_get_config();
  return text.substr(0, text.find(' ', text.find(' ') + 1));
}

std::unique_ptr<transport> connect(const placement& where) {
  if (!where.meets_others()) return nullptr;
  const std::vector<std::string> all = where.exchange("OpenBLAS", openblas_version());
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      throw failure(
          2,
          "RC5056: rank 0 has {}, rank {} has {}; their results differ: install the same version on "
          "all machines",
          all[0], rank, all[rank]);
  return where.others->connect();
}

}  // namespace

other_processes::other_processes(const placement& where, int world)
    : where_(where), world_(world), wires_(connect(where)) {}

void other_processes::share(int owner, std::span<double> values) {
  if (wires_ == nullptr) return;
  constexpr std::uint64_t above_communicators = std::uint64_t{1} << 63;
  auto* const data = reinterpret_cast<std::byte*>(values.data());
  std::vector<transport::outgoing> out;
  std::vector<transport::incoming> in;
  if (where_.rank != owner) in.push_back({owner, data, values.size_bytes()});
  else
    for (int r = 0; r < world_; ++r)
      if (r != owner) out.push_back({r, data, values.size_bytes()});
  shared_by_ = where_.rank != owner ? owner : -1;
  wires_->move(above_communicators | shared_++, out, in);
  shared_by_ = -1;
}

void other_processes::gather_times(const std::vector<traced>& own, std::vector<traced>& into) {
  if (wires_ == nullptr) into.insert(into.end(), own.begin(), own.end());
  else
    for (const std::string& theirs : where_.exchange("times of a step", packed(own)))
      unpack(theirs, names_, into);
}

}  // namespace rankc::runtime::host
