// SPDX-License-Identifier: Apache-2.0
// fuzz_plans: draws plans and tests each: it is refused with a message, or its program trains as its one-rank
// program does, whose gradients are those of its loss.
#include "verdict.hpp"

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <optional>

namespace rankc::runtime::host {
void prepare(char** argv);  // declared here: its header defines a `layout`, and so does rankc/plan_data.hpp
}

namespace fuzz {

namespace {

constexpr int chunk = 192;  // plans that are judged together

struct tally {
  int drawn = 0, refused = 0, emitted = 0, compared = 0, one_rank = 0, unsteady = 0, failed = 0;
  std::map<int, int> refused_by;
  std::map<std::string, int> failed_at;
  long long elements = 0, differences = 0;
  double loss = 0, gradients = 0, weights = 0, reference = 0, finite = 0;

  void add(const verdict& v) {
    ++drawn;
    refused += !v.refused_by.empty();
    emitted += v.emitted;
    compared += v.compared && !v.failed();
    one_rank += v.checked_one_rank && !v.failed();
    unsteady += !v.steady;
    failed += v.failed();
    for (int id : v.refused_by) ++refused_by[id];
    if (v.failed()) {
      ++failed_at[v.stage];
      return;
    }
    elements += v.elements;
    differences += v.differences;
    loss = std::max(loss, v.loss);
    gradients = std::max(gradients, v.gradients);
    weights = std::max(weights, v.weights);
    reference = std::max(reference, v.reference);
    finite = std::max(finite, v.finite);
  }
};

double cpu_seconds() {
  double total = 0;
  for (int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    getrusage(who, &used);
    total += static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
             1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  }
  return total;
}

void print(const tally& t) {
  fmt::print(
      "drawn {}: refused {}, emitted {}, of these compared and equal {}, too unsteady to compare {}; failed "
      "{}\n",
      t.drawn, t.refused, t.emitted, t.compared, t.unsteady, t.failed);
  for (const auto& [id, n] : t.refused_by) fmt::print("  refused by RC{}: {}\n", id, n);
  for (const auto& [stage, n] : t.failed_at) fmt::print("  failed at {}: {}\n", stage, n);
  fmt::print(
      "gradients and weights compared with one rank: {}; largest relative differences: loss {:.1e}, "
      "gradients {:.1e}, "
      "weights {:.1e}\n",
      t.elements, t.loss, t.gradients, t.weights);
  fmt::print(
      "one-rank programs {}: loss from the ops' definitions {:.1e}; gradients by finite differences {}, "
      "largest "
      "difference {:.1e}\n",
      t.one_rank, t.reference, t.differences, t.finite);
  fmt::print("seconds of processor time per plan: {:.2f}\n", cpu_seconds() / std::max(1, t.drawn));
}

void print_verdict(const verdict& v) {
  for (const std::string& s : v.sentences) fmt::print("refused: RC{}\n", s);
  if (v.failed()) fmt::print("FAILED at {}: {}\n", v.stage, v.wrong);
  else if (v.compared) fmt::print("equal: {} elements, {} finite differences\n", v.elements, v.differences);
}

}  // namespace

}  // namespace fuzz

int main(int argc, char** argv) {
  rankc::host::prepare(argv);
  CLI::App app{"Draws plans, and trains those that are accepted beside their one-rank programs."};
  std::uint64_t seed = 1, first = 0;
  std::optional<std::uint64_t> index;
  int count = 40, least_compared = 0;
  bool rounded = false, shrinks = false, keeps = false, says_all = false;
  fuzz::settings with{{RANKC_FUZZ_CXX, RANKC_FUZZ_INCLUDES}, "fuzz_programs"};
  app.add_option("--seed", seed);
  app.add_option("--index", index, "judge this plan alone, and print it");
  app.add_option("--first", first, "index of the first plan");
  app.add_option("--count", count, "plans");
  app.add_option("--least-compared", least_compared,
                 "exit 1 where fewer plans are emitted, compared and equal");
  app.add_option("--elements", with.elements, "elements of a model to differentiate");
  app.add_option("--jobs", with.at_once);
  app.add_option("--folder", with.folder, "for the programs");
  app.add_flag("--rounded", rounded,
               "plans whose linear layers are in eight bits, on layouts whose ranks round whole tensors");
  app.add_flag("--shrink", shrinks, "take away from plans that fail what they fail without");
  app.add_flag("--sentences", says_all, "print what refused plans are told");
  app.add_flag("--keep", keeps, "leave the programs there");
  CLI11_PARSE(app, argc, argv);
  if (index) {
    first = *index;
    count = 1;
  }

  fuzz::tally all;
  for (int done = 0; done < count;) {
    std::vector<fuzz::plan> plans;
    for (; done < count && static_cast<int>(plans.size()) < fuzz::chunk; ++done)
      plans.push_back(fuzz::draw_plan(seed, first + static_cast<std::uint64_t>(done), rounded));
    std::filesystem::remove_all(with.folder);
    std::filesystem::create_directories(with.folder);
    with.folder = std::filesystem::absolute(with.folder);
    const std::vector<fuzz::verdict> verdicts = fuzz::judge(with, plans);
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const fuzz::verdict& v = verdicts[i];
      all.add(v);
      if (!index && says_all)
        for (const std::string& s : v.sentences) fmt::print("{}: RC{}\n", plans[i].index, s);
      if (!index && !v.failed()) continue;
      fmt::print("{}", fuzz::describe(plans[i]));
      fuzz::print_verdict(v);
      if (v.failed() && shrinks) {
        const fuzz::plan least = fuzz::shrink(with, plans[i], v);
        fmt::print("the smallest that fails at this stage:\n{}", fuzz::describe(least));
        fuzz::print_verdict(fuzz::judge(with, {least})[0]);
      }
      fmt::print("\n");
    }
  }
  if (!keeps) std::filesystem::remove_all(with.folder);
  fuzz::print(all);
  return all.failed > 0 || all.compared < least_compared ? 1 : 0;
}
