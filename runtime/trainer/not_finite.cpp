// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/not_finite.hpp>

#include "shared_text.hpp"

#include <rankc/trainer/parameters.hpp>
#include <rankc/trainer/router_metrics.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <optional>
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

std::string not_finite_text(region where, const shard& s, const std::string& name, std::size_t count) {
  const std::size_t all = s.rows * s.columns;
  if (where == region::weights)
    return say("RC6560: rank {}: {} of {} elements of weight {} are NaN or Inf", s.rank, count, all, name);
  return say("RC6561: rank {}: {} of {} elements of the gradient of {} are NaN or Inf", s.rank, count, all,
             name);
}

/// The first tensor of this process's ranks that is not finite. The text's first line is a sort key: region,
/// position, rank.
std::string find_own(engine& e) {
  const std::vector<global_parameter> all = global_parameters(e.about());
  const auto look = [&](region where, std::size_t p, std::size_t turn) -> std::string {
    for (const shard& s : all[p].holders) {
      const std::size_t count = e.holds(s.rank) ? count_not_finite(e, s, where) : 0;
      if (count > 0)
        return fmt::format("{} {:08} {:08}\n{}", static_cast<int>(where), turn, s.rank,
                           not_finite_text(where, s, all[p].name, count));
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

std::string without_order(const std::string& found) { return found.substr(found.find('\n') + 1); }

bool is_weight(const std::string& found) {
  return found.starts_with(std::to_string(static_cast<int>(region::weights)));
}

bool is_finite(const step_output& out) { return std::isfinite(out.loss) && std::isfinite(out.grad_norm); }

/// Runs the step again to find the first op that causes the fault. A collective sorts after the ranks' local
/// ops, because it may have received NaN or Inf from another rank.
std::string find_origin(engine& e, const placement& where, const step_input& in,
                        const std::string& gradient) {
  const std::optional<retraced> again = e.retrace(in);
  if (!again) return gradient;
  std::string mine;
  for (const origin& o : again->origins)
    if (const std::string text = fmt::format("{} {:020} {:08}\nrank {}, {}", static_cast<int>(o.is_shared),
                                             o.op, o.rank, o.rank, o.text);
        mine.empty() || text < mine)
      mine = text;
  const std::string first = first_of_all(where, "origin of what is not finite", mine);
  if (!first.empty()) return without_order(first);
  if (!is_finite(again->out)) return gradient;
  const std::string fault =
      say("RC6562: the repeated step gives finite numbers, so memory or a processor of a machine is faulty");
  return gradient.empty() ? fault : gradient + "; " + fault;
}

}  // namespace

std::string first_not_finite(engine& e, const placement& where) {
  return without_order(first_of_all(where, "what is not finite", find_own(e)));
}

std::string find_overflow(engine& e, const placement& where) {
  return first_of_all(where, "experts that are full", overflow_of(e));
}

void refuse_if_not_finite(engine& e, const placement& where, const step_input& in, const step_output& out) {
  if (is_finite(out)) return;
  const bool is_applied = std::isfinite(out.grad_norm);
  const std::string found = first_of_all(where, "what is not finite", find_own(e));
  if (!is_applied && !is_weight(found))
    if (const std::string full = find_overflow(e, where); !full.empty())
      throw failure(
          70, "RC6563: step {}: {}; no rank has applied the step. Use a larger capacity or overflow=drop",
          in.step, full);
  const std::string first =
      is_applied || is_weight(found) ? without_order(found) : find_origin(e, where, in, without_order(found));
  const std::string cause = first.empty() ? "unknown" : first, steps = fmt::format("{0}:{0}", in.step);
  if (is_applied)
    throw failure(
        70,
        "RC6564: step {}: the loss is {} and the gradient norm is {} at learning rate {}; the step "
        "has been applied, because its gradients are finite. Cause: {}. To go on past its batch: train "
        "--load CHECKPOINT --skip-batches {}",
        in.step, out.loss, out.grad_norm, in.lr, cause, steps);
  throw failure(
      70,
      "RC6565: step {}: the loss is {} and the gradient norm is {} at learning rate {}; no rank has "
      "applied the step. Cause: {}. To go on past its batch: train --load CHECKPOINT --skip-batches {}",
      in.step, out.loss, out.grad_norm, in.lr, cause, steps);
}

}  // namespace rankc::runtime
