// SPDX-License-Identifier: Apache-2.0
// Routers against those of other systems: experts, weights, counts and the gradient of the logits. Experts
// against loops.
#include "workspace.hpp"

#include <rankc/runtime/bf16.hpp>
#include <rankc/runtime/update_rules.hpp>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

namespace router_test {

using namespace rankc::test;
namespace host = rankc::host;
using nlohmann::json;

namespace {

json read_cases() {
  std::ifstream in(RANKC_TEST_ORACLES "/hf/router.json");
  return json::parse(in);
}

values flat(const json& rows) {
  values all;
  for (const json& row : rows)
    for (const json& x : row) all.push_back(x.get<double>());
  return all;
}

/// The results of a routing rule: weights, choice, and the gradient of the sum of weight * (expert + 1) / 10.
struct routed {
  values weights, chosen, dlogits;
};
/// Route by scores, with groups if the rule has them, and with a bias if there is one.
void take_by_scores(workspace<double>& space, const json& rule, at weights, at chosen, at x,
                    const values& bias, int tokens, int experts, int picks) {
  const auto room = [&](int count) { return space.room(static_cast<std::size_t>(count)); };
  const bool softmax = rule["scores"] == "softmax", biased = rule.contains("biased");
  at scores = room(tokens * experts);
  const at b = biased ? space.put(bias) : at{};
  const int groups = rule.value("groups", 0), taken = rule.value("groups_taken", 0),
            best = rule.value("group_best", 0);
  const at y = groups ? room(tokens * experts) : scores, kept = room(tokens * taken);
  const auto& on = space.lane();
  (softmax ? host::softmax_scores<double> : host::sigmoid_scores<double>)(on, scores, x, tokens, experts);
  if (groups && biased)
    host::biased_keep_groups<double>(on, y, kept, scores, b, tokens, groups, experts / groups, taken, best);
  else if (groups)
    host::keep_groups<double>(on, y, kept, scores, tokens, groups, experts / groups, taken, best);
  if (biased)
    (softmax ? host::biased_softmax_top_by<double>
             : host::biased_sigmoid_top_by<double>)(on, weights, chosen, x, y, b, tokens, experts, picks);
  else
    (softmax ? host::softmax_top_by<double> : host::sigmoid_top_by<double>)(on, weights, chosen, x, y, tokens,
                                                                            experts, picks);
}
routed route(const json& rule, const values& logits, int tokens, int experts, int picks,
             const values& bias = {}) {
  workspace<double> space;
  const std::size_t all = static_cast<std::size_t>(tokens) * picks;
  const at x = space.put(logits), weights = space.room(all), chosen = space.room(all),
           dlogits = space.room(logits.size());
  const auto& on = space.lane();
  const bool softmax = rule["scores"] == "softmax", normalized = rule["normalized"];
  const double scaling = rule["scaling"];
  if (rule.contains("biased") || rule.contains("groups"))
    take_by_scores(space, rule, weights, chosen, x, bias, tokens, experts, picks);
  else
    (softmax ? host::softmax_top<double> : host::sigmoid_top<double>)(on, weights, chosen, x, tokens, experts,
                                                                      picks);
  at made = weights;
  if (normalized) host::normalize<double>(on, made = space.room(all), weights, tokens, picks, scaling);
  else host::scale<double>(on, made = space.room(all), weights, all, scaling);
  routed out{space.get(made, all), {}, {}};
  const auto* picked = on.template at<std::int32_t>(chosen);
  values gradient;
  for (std::size_t i = 0; i < all; ++i) {
    out.chosen.push_back(picked[i]);
    gradient.push_back((picked[i] + 1) / 10.0);
  }
  const at d = space.put(gradient), back = space.room(all);
  if (normalized) host::normalize_grad<double>(on, back, d, weights, tokens, picks, scaling);
  else host::scale<double>(on, back, d, all, scaling);
  (softmax ? host::softmax_top_grad<double> : host::sigmoid_top_grad<double>)(on, dlogits, back, x, chosen,
                                                                              tokens, experts, picks);
  out.dlogits = space.get(dlogits, logits.size());
  return out;
}

/// Sort each token's picks by descending weight, as in the reference; picks by biased scores are not in that
/// order.
void sort_picks(routed& r, int picks) {
  using pick = std::pair<double, double>;
  for (std::size_t n = 0; n < r.chosen.size(); n += static_cast<std::size_t>(picks)) {
    std::vector<pick> of_token;
    for (std::size_t i = n; i < n + static_cast<std::size_t>(picks); ++i)
      of_token.emplace_back(r.weights[i], r.chosen[i]);
    std::sort(of_token.begin(), of_token.end(),
              [](const pick& a, const pick& b) { return a.first > b.first; });
    for (std::size_t k = 0; k < of_token.size(); ++k)
      std::tie(r.weights[n + k], r.chosen[n + k]) = of_token[k];
  }
}

void check_all(const values& found, const values& expected, double within) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(found[i] - expected[i]) <= within);
  }
}

/// A router loss of one layer or two: its value, the first layer's choices, and both layers' gradients of the
/// logits.
struct lost {
  double value = 0;
  values counts, dlogits[2];
};
lost lose(const json& loss, const std::vector<values>& logits, int tokens, int experts, int picks) {
  workspace<double> space;
  const auto& on = space.lane();
  const bool softmax = loss["scores"] == "softmax";
  const int layers = static_cast<int>(logits.size()), own_width = 3 * experts, width = layers * own_width;
  const auto room = [&](int count) { return space.room(static_cast<std::size_t>(count)); };
  at s = room(width);
  host::clear<double>(on, s, static_cast<std::size_t>(width));
  std::vector<at> x;
  lost out;
  for (const values& of_layer : logits) {
    const at own = room(own_width), pushed = room(width);
    x.push_back(space.put(of_layer));
    const at weights = room(tokens * picks), chosen = room(tokens * picks);
    (softmax ? host::softmax_top<double> : host::sigmoid_top<double>)(on, weights, chosen, x.back(), tokens,
                                                                      experts, picks);
    (softmax ? host::softmax_statistics<double> : host::sigmoid_statistics<double>)(on, own, room(own_width),
                                                                                    x.back(), chosen, tokens,
                                                                                    experts, picks);
    if (out.counts.empty()) out.counts = space.get(own, static_cast<std::size_t>(experts));
    host::push<double>(on, pushed, s, own, width, own_width);
    s = pushed;
  }
  const double scale = loss["scale"];
  const at value = space.room(1), ds = room(width);
  const auto take = [&](auto make, auto derive) {
    make(on, value, s, s, 3 * layers, experts, scale, false);
    derive(on, ds, s, 3 * layers, experts, scale);
  };
  if (loss["loss"] == "balance_loss") take(host::balance_loss<double>, host::balance_loss_grad<double>);
  else if (loss["loss"] == "layer_balance_loss")
    take(host::layer_balance_loss<double>, host::layer_balance_loss_grad<double>);
  else take(host::z_loss<double>, host::z_loss_grad<double>);
  out.value = space.get(value, 1)[0];
  at d = ds;
  for (int l = layers; l-- > 0;) {
    const at before = room(width), down = room(own_width),
             dlogits = space.room(logits[static_cast<std::size_t>(l)].size());
    host::push_grad<double>(on, before, down, d, width, own_width);
    d = before;
    (softmax ? host::softmax_statistics_grad<double>
             : host::sigmoid_statistics_grad<double>)(on, dlogits, down, x[static_cast<std::size_t>(l)],
                                                      tokens, experts);
    out.dlogits[l] = space.get(dlogits, logits[static_cast<std::size_t>(l)].size());
  }
  return out;
}

}  // namespace

TEST_CASE("losses of routers are those of other systems, and so are their gradients") {
  int losses = 0;
  for (const json& c : read_cases())
    for (const json& loss : c["losses"]) {
      CAPTURE(loss["name"].get<std::string>());
      std::vector<values> logits{flat(c["logits"])};
      if (loss.contains("dlogits_second")) logits.push_back(flat(c["second_logits"]));
      const lost found = lose(loss, logits, c["tokens"], c["experts"], c["top_k"]);
      CHECK(std::abs(found.value - loss["value"].get<double>()) <= 1e-13);
      // The reference has 13 digits of the gradients.
      check_all(found.dlogits[0], flat(loss["dlogits"]), 6e-14);
      if (logits.size() > 1) check_all(found.dlogits[1], flat(loss["dlogits_second"]), 6e-14);
      if (loss.contains("counts")) CHECK(found.counts == loss["counts"].get<values>());
      ++losses;
    }
  CHECK(losses == 10);
}

TEST_CASE("routers choose, weigh and hand gradients back as other systems do") {
  int rules = 0;
  for (const json& c : read_cases())
    for (const json& rule : c["rules"]) {
      CAPTURE(rule["name"].get<std::string>());
      const int tokens = c["tokens"], experts = c["experts"], picks = c["top_k"];
      routed found = route(rule, flat(c["logits"]), tokens, experts, picks, c["bias"].get<values>());
      if (rule.contains("biased")) sort_picks(found, picks);
      CHECK(found.chosen == flat(rule["indices"]));
      check_all(found.weights, flat(rule["weights"]), 2e-13);
      check_all(found.dlogits, flat(rule["dlogits"]), 2e-13);
      double scalar = 0;
      values counts(static_cast<std::size_t>(experts), 0.0);
      for (std::size_t i = 0; i < found.chosen.size(); ++i) {
        counts[static_cast<std::size_t>(found.chosen[i])] += 1;
        scalar += found.weights[i] * (found.chosen[i] + 1) / 10;
      }
      CHECK(counts == rule["counts"].get<values>());
      CHECK(std::abs(scalar - rule["scalar"].get<double>()) <= 1e-11);
      ++rules;
    }
  CHECK(rules == 28);
}

TEST_CASE("of equal logits those of lower experts are taken") {
  json rule{{"scores", "softmax"}, {"normalized", false}, {"scaling", 1.0}};
  CHECK(route(rule, {1, 3, 3, 3, 2, 5, 5, 5, 5, 5}, 2, 5, 3).chosen == values{1, 2, 3, 0, 1, 2});
  rule["scores"] = "sigmoid";
  CHECK(route(rule, {1, 3, 3, 3, 2, 90, 80, 70, 60, 100}, 2, 5, 3).chosen ==
        values{1, 2, 3, 4, 0, 1});  // all sigmoids are 1
}

TEST_CASE(
    "of groups of equal scores the lower are taken, and of their experts the lower; a bias moves the choice, "
    "and no weight") {
  json rule{{"scores", "sigmoid"}, {"normalized", false}, {"scaling", 1.0},
            {"groups", 3},         {"groups_taken", 2},   {"group_best", 1}};
  CHECK(route(rule, values(6, 1.0), 1, 6, 3).chosen == values{0, 1, 2});
  CHECK(route(rule, {9, 0, 1, 1, 2, 2}, 1, 6, 4).chosen ==
        values{0, 4, 5, 1});  // by each group's best expert, so not from the second group
  rule["group_best"] = 2;
  // By each group's two best experts.
  CHECK(route(rule, {3, -9, 1, 1, 2, 2}, 1, 6, 4).chosen == values{4, 5, 2, 3});
  rule["groups_taken"] = 3;
  rule["biased"] = true;
  const values logits{1, 2, 3, 4, 5, 6}, bias{0, 2, 0, 0, 0, -2};
  const routed found = route(rule, logits, 1, 6, 2, bias);
  CHECK(found.chosen == values{1, 4});
  for (std::size_t k = 0; k < 2; ++k)
    CHECK(std::abs(found.weights[k] -
                   1 / (1 + std::exp(-logits[static_cast<std::size_t>(found.chosen[k])]))) <= 1e-15);
}

/// Trains the bias of a router of 16 experts and 4 picks on scores that favour some experts, 200 steps of 256
/// tokens. Choices are by the bias as `read` gives it.
/// Returns: of the last 50 steps the share of picks that the unrounded bias would not take, and the mean of
/// the largest load divided by the mean load.
std::pair<double, double> balanced_by(const std::function<double(double)>& read, double first_bias) {
  constexpr int tokens = 256, experts = 16, picks = 4, steps = 200, last = 50;
  constexpr double rate = 0.001, mean = tokens * picks / double{experts};
  const json rule{{"scores", "sigmoid"}, {"biased", true}, {"normalized", false}, {"scaling", 1.0}};
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  values skew(experts), bias(experts, first_bias), as_read(experts), logits(tokens * experts);
  for (double& x : skew) x = 0.3 * normal(random);
  double others = 0, largest = 0;
  for (int step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = skew[i % experts] + normal(random);
    std::transform(bias.begin(), bias.end(), as_read.begin(), read);
    const values chosen = route(rule, logits, tokens, experts, picks, as_read).chosen;
    values counts(experts, 0.0);
    for (const double e : chosen) counts[static_cast<std::size_t>(e)] += 1;
    if (step >= steps - last) {
      largest += *std::max_element(counts.begin(), counts.end()) / mean / last;
      const values exact = route(rule, logits, tokens, experts, picks, bias).chosen;
      for (std::size_t n = 0; n < chosen.size(); n += picks)
        for (int k = 0; k < picks; ++k)
          others += std::count(exact.begin() + n, exact.begin() + n + picks, chosen[n + k]) == 0;
    }
    for (int e = 0; e < experts; ++e) bias[e] = rankc::runtime::balanced(bias[e], counts[e], rate, mean);
  }
  return {others / (last * tokens * picks), largest};
}

TEST_CASE("a bias that is read in bf16 balances as well as in f32 as long as it is small") {
  const auto in_bf16 = [](double x) {
    return static_cast<double>(
        rankc::runtime::widened(rankc::runtime::rounded_to_nearest(static_cast<float>(x))));
  };
  const auto [exact_others, exact] = balanced_by([](double x) { return x; }, 0);
  CHECK(exact_others == 0);
  const auto [small_others, small] = balanced_by(in_bf16, 0);
  const auto [large_others, large] = balanced_by(in_bf16, 3);
  MESSAGE("largest load by mean load: " << exact << ", in bf16 " << small << ", in bf16 near 3 " << large);
  MESSAGE("other picks in bf16: " << small_others << ", near 3 " << large_others);
  CHECK(small_others < 0.005);
  CHECK(small < 1.02 * exact);
  CHECK(large_others > 0.01);  // steps of 1/64 near 3, as models/experts.md says
}

TEST_CASE_TEMPLATE("choices of each expert are counted, and added up", T, float, double) {
  workspace<T> space;
  const at chosen = space.room(6), counts = space.put(values{7, 7, 7, 7});
  const std::int32_t choice[]{3, 0, 0, 1, 3, 0};
  std::copy(std::begin(choice), std::end(choice), space.lane().template at<std::int32_t>(chosen));
  host::count_choices<T>(space.lane(), counts, chosen, 3, 2, 4, false);
  CHECK(space.get(counts, 4) == values{3, 1, 0, 2});
  host::count_choices<T>(space.lane(), counts, chosen, 3, 2, 4, true);
  CHECK(space.get(counts, 4) == values{6, 2, 0, 4});
}

TEST_CASE_TEMPLATE("slots are those of one expert after another, in the order of tokens", T, float, double) {
  constexpr int tokens = 4, picks = 2, segments = 4, width = 3;
  workspace<T> space;
  const at chosen = space.room(8), places = space.room(8), offsets = space.room(8);
  const std::int32_t choice[]{3, 0, 0, 1, 3, 1, 1, 0};
  std::copy(std::begin(choice), std::end(choice), space.lane().template at<std::int32_t>(chosen));
  host::arrange<T>(space.lane(), places, offsets, chosen, tokens, picks, segments);
  const auto ints = [&](at where) {
    const auto* x = space.lane().template at<std::int32_t>(where);
    return std::vector<std::int32_t>(x, x + 8);
  };
  CHECK(ints(places) == std::vector<std::int32_t>{6, 0, 1, 3, 7, 4, 5, 2});
  CHECK(ints(offsets) == std::vector<std::int32_t>{0, 3, 6, 6, 3, 6, 6, 8});

  const values x = random_values(tokens * width, 1), weights = random_values(tokens * picks, 2),
               dy = random_values(tokens * width, 3);
  const at slots = space.room(tokens * picks * width), y = space.room(x.size()), w = space.put(weights),
           d = space.put(dy), dslots = space.room(tokens * picks * width),
           dweights = space.room(weights.size());
  host::dispatch<T>(space.lane(), slots, space.put(x), places, tokens, picks, width);
  const values in_slots = space.get(slots, tokens * picks * width);
  host::combine<T>(space.lane(), y, slots, w, places, tokens, picks, width);
  const values combined = space.get(y, x.size());
  host::collect<T>(space.lane(), y, slots, places, tokens, picks, width);
  const values collected = space.get(y, x.size());
  host::combine_grad<T>(space.lane(), dslots, dweights, d, slots, w, places, tokens, picks, width);
  const values given = space.get(dslots, in_slots.size()), of_weights = space.get(dweights, weights.size());
  for (int n = 0; n < tokens; ++n) {
    for (int c = 0; c < width; ++c) {
      CHECK(std::abs(combined[n * width + c] - (weights[2 * n] + weights[2 * n + 1]) * x[n * width + c]) <=
            tolerance<T>);
      CHECK(std::abs(collected[n * width + c] - 2 * x[n * width + c]) <= tolerance<T>);
    }
    for (int k = 0; k < picks; ++k) {
      const int slot = ints(places)[n * picks + k];
      double dot = 0;
      for (int c = 0; c < width; ++c) {
        CHECK(std::abs(in_slots[slot * width + c] - x[n * width + c]) <= tolerance<T>);
        CHECK(std::abs(given[slot * width + c] - weights[n * picks + k] * dy[n * width + c]) <= tolerance<T>);
        dot += dy[n * width + c] * x[n * width + c];
      }
      CHECK(std::abs(of_weights[n * picks + k] - dot) <= tolerance<T>);
    }
  }
}

TEST_CASE_TEMPLATE(
    "grouped products are those of each expert's rows; others stay, and an expert without rows has no "
    "gradient",
    T, float, double) {
  constexpr int rows = 9, in = 5, out = 3, segments = 6, experts = 3;
  const int begin[]{0, 2, 2, 4, 7, 8},
      end[]{2, 2, 3, 6, 7, 9};  // rows 3 and 6 are unused; expert 1 has no rows
  workspace<T> space;
  const at offsets = space.room(2 * segments);
  auto* o = space.lane().template at<std::int32_t>(offsets);
  std::copy(std::begin(begin), std::end(begin), o);
  std::copy(std::begin(end), std::end(end), o + segments);
  const values x = random_values(rows * in, 1), dy = random_values(rows * out, 2),
               w = random_values(experts * out * in, 3);
  const at at_x = space.put(x), at_dy = space.put(dy), at_w = space.put(w),
           y = space.put(values(rows * out, 7.0)), dx = space.put(values(rows * in, 7.0)),
           dw = space.put(values(w.size(), 7.0));
  host::grouped_linear<T>(space.lane(), y, at_x, at_w, offsets, rows, in, out, segments, experts);
  host::grouped_linear_dx<T>(space.lane(), dx, at_dy, at_w, offsets, rows, in, out, segments, experts);
  values want_y(rows * out, 7.0), want_dx(rows * in, 7.0), want_dw(w.size(), 0.0);
  for (int s = 0; s < segments; ++s)
    for (int r = begin[s]; r < end[s]; ++r) {
      const int e = s % experts * out * in;
      for (int j = 0; j < out; ++j) {
        want_y[r * out + j] = 0;
        for (int i = 0; i < in; ++i) {
          want_y[r * out + j] += x[r * in + i] * w[e + j * in + i];
          want_dw[e + j * in + i] += dy[r * out + j] * x[r * in + i];
        }
      }
      for (int i = 0; i < in; ++i) {
        want_dx[r * in + i] = 0;
        for (int j = 0; j < out; ++j) want_dx[r * in + i] += dy[r * out + j] * w[e + j * in + i];
      }
    }
  check_all(space.get(y, want_y.size()), want_y, 10 * tolerance<T>);
  check_all(space.get(dx, want_dx.size()), want_dx, 10 * tolerance<T>);
  host::grouped_linear_dw<T>(space.lane(), dw, at_dy, at_x, offsets, rows, in, out, segments, experts, false);
  const values once = space.get(dw, w.size());
  check_all(once, want_dw, 10 * tolerance<T>);
  for (int i = out * in; i < 2 * out * in; ++i) CHECK(once[i] == 0);
  host::grouped_linear_dw<T>(space.lane(), dw, at_dy, at_x, offsets, rows, in, out, segments, experts, true);
  for (double& v : want_dw) v *= 2;
  check_all(space.get(dw, w.size()), want_dw, 20 * tolerance<T>);
}

}  // namespace router_test
