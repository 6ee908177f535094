// SPDX-License-Identifier: Apache-2.0
#include <rankc/runtime/tools/not_finite.hpp>

#include "refusal.hpp"
#include <rankc/runtime/tools/parameters.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <vector>

namespace rankc::runtime {
namespace {

std::size_t count_not_finite(engine& e, const shard& s, region where) {
  constexpr std::size_t at_once = std::size_t{1} << 20;
  std::vector<double> values;
  std::size_t count = 0;
  for (std::size_t first = 0, all = s.rows * s.columns; first < all; first += values.size()) {
    values.resize(std::min(at_once, all - first));
    e.read(s.rank, where, s.element + first, values.size(), values.data());
    count += static_cast<std::size_t>(
        std::count_if(values.begin(), values.end(), [](double x) { return !std::isfinite(x); }));
  }
  return count;
}

/// Of the ranks of this process: how late it comes, and what it is. Texts are in the order of their causes.
std::string find_own(engine& e) {
  const std::vector<global_parameter> all = global_parameters(e.about());
  const auto look = [&](region where, std::size_t p, std::size_t turn) -> std::string {
    for (const shard& s : all[p].holders) {
      const std::size_t count = e.holds(s.rank) ? count_not_finite(e, s, where) : 0;
      if (count > 0)
        return fmt::format("{} {:08} {:08}\nrank {}: {} {}: {} of {} elements are not finite",
                           static_cast<int>(where), turn, s.rank, s.rank,
                           where == region::weights ? "the weight" : "the gradient of", all[p].name, count,
                           s.rows * s.columns);
    }
    return "";
  };
  for (std::size_t p = 0; p < all.size(); ++p)
    if (const std::string found = look(region::weights, p, p); !found.empty()) return found;
  for (std::size_t turn = 0; turn < all.size(); ++turn)
    if (const std::size_t p = all.size() - 1 - turn; all[p].trained)
      if (const std::string found = look(region::gradients, p, turn); !found.empty()) return found;
  return "";
}

}  // namespace

std::string first_not_finite(engine& e, const placement& where) {
  std::vector<std::string> found{find_own(e)};
  if (where.is_one_rank()) found = where.exchange("what is not finite", found[0]);
  std::erase(found, "");
  if (found.empty()) return "";
  const std::string& first = *std::min_element(found.begin(), found.end());
  return first.substr(first.find('\n') + 1);
}

void refuse_if_not_finite(engine& e, const placement& where, const step_input& in, const step_output& out) {
  if (std::isfinite(out.loss) && std::isfinite(out.grad_norm)) return;
  const std::string first = first_not_finite(e, where);
  throw refusal(70, "step {}: the loss is {} and the gradient norm {}, at learning rate {}; {}{}{}", in.step,
                out.loss, out.grad_norm, in.lr,
                std::isfinite(out.grad_norm) ? "the step has been applied, since its gradients are finite"
                                             : "no rank has applied the step",
                first.empty() ? "" : "; ", first);
}

}  // namespace rankc::runtime
