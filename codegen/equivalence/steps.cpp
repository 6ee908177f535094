// SPDX-License-Identifier: Apache-2.0
// Checks that the steps of a plan fit together: each begins with the tensors that the others leave.
#include <rankc/codegen/equivalence.hpp>

#include <fmt/format.h>

#include <algorithm>

#include "claims.hpp"
#include "tails.hpp"

namespace rankc::codegen {

namespace {

using algebra::refusal;

/// Checks the steps of a plan: train and evaluate, each once, or evaluate alone if the model trains nothing.
/// A file without a model has evaluate, and may have train.
void check_names(const std::vector<kept_state>& steps, const specification& model) {
  const auto count = [&](const char* name) {
    return std::count_if(steps.begin(), steps.end(), [&](const kept_state& s) { return s.step == name; });
  };
  const auto trainings = count("train"), evaluations = count("evaluate");
  for (const kept_state& s : steps)
    if (s.step != "train" && s.step != "evaluate")
      throw refusal("RC7736: a step is {}; expected train or evaluate", s.step);
  if (evaluations != 1)
    throw refusal("RC7737: the plan has {} steps called evaluate; expected 1", evaluations);
  const bool is_known = !model.layers.empty(), trains = is_known ? model.trains() : trainings > 0;
  if (trainings != (trains ? 1 : 0))
    throw refusal("RC7738: the plan has {} steps called train; expected {}, as the model has {}", trainings,
                  trains ? 1 : 0, trains ? "parameters that are trained" : "no parameter that is trained");
}

/// "the weight of layers.0.wq, 0..7 x 0..15, in bytes 1024 to 1536 as f32"
std::string text_of(const kept_tensor& t) {
  std::string text = algebra::name_of(t.what), between = ", ";
  for (const box_range& b : t.what.box) {
    text += fmt::format("{}{}..{}", between, b.first, b.first + b.count - 1);
    between = " x ";
  }
  if (t.what.kind == holding_kind::rotary)
    text += fmt::format(", of {} positions and {} elements with base {}", t.what.positions, t.what.dim,
                        t.what.theta);
  return text + fmt::format(", in bytes {} to {} as {}", t.at.begin, t.at.end,
                            element_type_names[static_cast<int>(t.at.type)]);
}

bool is_same(const kept_tensor& x, const kept_tensor& y) {
  return x.at.begin == y.at.begin && x.at.end == y.at.end && x.at.type == y.at.type && x.what == y.what;
}

void check_same(const kept_state& first, const kept_state& other) {
  if (first.calls != other.calls)
    throw refusal("RC7754: {} calls the kernels of {}, and {} those of {}; expected the same kernels",
                  first.step, name_of(first.calls), other.step, name_of(other.calls));
  if (first.ranks.size() != other.ranks.size())
    throw refusal("RC7739: {} is of {} ranks and {} of {}; expected the same ranks", first.step,
                  first.ranks.size(), other.step, other.ranks.size());
  for (std::size_t r = 0; r < first.ranks.size(); ++r) {
    const kept_state::rank &x = first.ranks[r], &y = other.ranks[r];
    if (x.number != y.number)
      throw refusal("RC7740: rank {} of {} stands where rank {} of {} does; expected the same ranks",
                    x.number, first.step, y.number, other.step);
    const auto [a, b] =
        std::mismatch(x.tensors.begin(), x.tensors.end(), y.tensors.begin(), y.tensors.end(), is_same);
    if (a == x.tensors.end() && b == y.tensors.end()) continue;
    throw refusal("RC7741: rank {}: {} begins with {}, and {} with {}; expected the same", x.number,
                  first.step, a == x.tensors.end() ? "nothing more" : text_of(*a), other.step,
                  b == y.tensors.end() ? "nothing more" : text_of(*b));
  }
}

/// The writes of a rank, without padding.
std::vector<access> written_by(const rank_program& p) {
  std::vector<access> all;
  for (const op& o : p.ops)
    for (std::size_t w = 0; w < o.writes.size(); ++w)
      if (!algebra::is_padding(o, w)) all.push_back(o.writes[w]);
  return all;
}

/// Checks that no step writes where kernels of another step read and write behind their tensors.
void check_tails(const kept_state& taking, const kept_state& writing) {
  for (std::size_t r = 0; r < taking.ranks.size(); ++r) {
    if (taking.ranks[r].tails.empty()) continue;
    for (const access& a : writing.ranks[r].written)
      if (algebra::meets(taking.ranks[r].tails, a))
        throw refusal(
            "RC7759: rank {}: {} writes bytes {} to {}; expected padding there, which a kernel of {} takes "
            "with "
            "the tensor before it",
            taking.ranks[r].number, writing.step, a.begin, a.end, taking.step);
  }
}

}  // namespace

std::string name_of(const kernel_set& k) {
  return std::string(k.on_host ? "host" : "cuda") + (k.deterministic ? ", deterministic" : "");
}

kept_state kept_by(const program& p) {
  kept_state all{p.step, p.calls, {}};
  for (std::size_t r = 0; r < p.ranks.size(); ++r) {
    kept_state::rank of{p.number_of(static_cast<int>(r)), {}};
    for (const op& o : p.ranks[r].ops) {
      if (o.kind != op_kind::begin) continue;
      for (std::size_t i = 0; i < std::min(o.writes.size(), o.holds.size()); ++i)
        if (is_kept(o.holds[i].kind)) of.tensors.push_back({o.writes[i], o.holds[i]});
    }
    std::stable_sort(of.tensors.begin(), of.tensors.end(),
                     [](const kept_tensor& x, const kept_tensor& y) { return x.at.begin < y.at.begin; });
    of.tails = algebra::tails_of(p.ranks[r]);
    of.written = written_by(p.ranks[r]);
    all.ranks.push_back(std::move(of));
  }
  return all;
}

equivalence check_steps(const std::vector<kept_state>& steps, const specification& model) {
  equivalence result;
  try {
    check_names(steps, model);
    for (std::size_t s = 1; s < steps.size(); ++s) {
      check_same(steps[0], steps[s]);
      check_tails(steps[0], steps[s]);
      check_tails(steps[s], steps[0]);
    }
  } catch (const refusal& why) {
    result.reasons.push_back(why.what());
    return result;
  }
  std::size_t tensors = 0;
  for (const kept_state::rank& r : steps[0].ranks) tensors += r.tensors.size();
  result.holds = true;
  result.claims.push_back(fmt::format(
      "every step begins with the same {} tensors in the same bytes of {} ranks: weights, working copies, "
      "moments, rotary tables and padding",
      tensors, steps[0].ranks.size()));
  return result;
}

}  // namespace rankc::codegen
