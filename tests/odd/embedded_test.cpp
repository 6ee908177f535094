// SPDX-License-Identifier: Apache-2.0
// Ranks stepped by an application, each on its own thread, give the same bits as a trainer's ranks, whether
// they communicate within the process or through the application.
#include <doctest/doctest.h>

#include <rankc/runtime/host/embedded.hpp>

#include <barrier>
#include <cstring>
#include <mutex>
#include <thread>

#include "run.hpp"

namespace embedded_test {

namespace {

using namespace rankc::runtime;
using namespace rankc::host;

/// Carries the communications of ranks in one process, as an application might.
class exchange {
 public:
  explicit exchange(const description& about) : about_(about) {}

  class of_rank final : public carriage {
   public:
    of_rank(exchange& all, int rank) : all_(all), rank_(rank) {}
    void start(const call& c) noexcept override { all_.start(rank_, c); }
    state look(int communicator) noexcept override { return all_.look(rank_, communicator); }

   private:
    exchange& all_;
    int rank_;
  };

 private:
  /// One communication: its ranks' calls, and how many ranks have not yet seen its end.
  struct meeting {
    std::map<int, carriage::call> calls;  // by rank
    std::size_t left = 0;
    bool done = false;
  };

  void start(int rank, const carriage::call& c) {
    const std::lock_guard lock(mutex_);
    meeting& here = meetings_[{c.communicator, ++started_[{rank, c.communicator}]}];
    here.calls.emplace(rank, c);
    const std::span<const int> ranks = ranks_of(c.communicator);
    if (here.calls.size() < ranks.size()) return;
    if (c.type == dtype::f64) carry<double>(here.calls, ranks);
    else carry<float>(here.calls, ranks);
    here.left = ranks.size();
    here.done = true;
  }
  carriage::state look(int rank, int communicator) {
    const std::lock_guard lock(mutex_);
    const auto here = meetings_.find({communicator, started_.at({rank, communicator})});
    if (!here->second.done) return carriage::state::under_way;
    if (--here->second.left == 0) meetings_.erase(here);
    return carriage::state::done;
  }
  std::span<const int> ranks_of(int communicator) const {
    return about_.communicators[static_cast<std::size_t>(communicator)].ranks;
  }

  template <class T>
  void carry(const std::map<int, carriage::call>& calls, std::span<const int> ranks) {
    const carriage::call& first = calls.at(ranks[0]);
    const auto size = ranks.size();
    const std::size_t count = first.count;
    const auto from = [&](std::size_t i) { return static_cast<const T*>(calls.at(ranks[i]).from); };
    const auto to = [&](std::size_t i) { return static_cast<T*>(calls.at(ranks[i]).to); };
    const auto combined = [&](std::size_t begin) {
      std::vector<T> all(from(0) + begin, from(0) + begin + count);
      for (std::size_t i = 1; i < size; ++i)
        for (std::size_t n = 0; n < count; ++n)
          all[n] = first.how == reduction::sum ? all[n] + from(i)[begin + n]
                                               : std::max(all[n], from(i)[begin + n]);
      return all;
    };
    switch (first.kind) {
      case carriage::kind::send:
        std::memmove(calls.at(ranks[1]).to, first.from, count);
        break;
      case carriage::kind::receive:
        FAIL("the first of a pair sends");
        break;
      case carriage::kind::all_reduce: {
        const std::vector<T> all = combined(0);
        for (std::size_t i = 0; i < size; ++i) std::copy(all.begin(), all.end(), to(i));
        break;
      }
      case carriage::kind::all_gather: {
        std::vector<T> all;
        for (std::size_t i = 0; i < size; ++i) all.insert(all.end(), from(i), from(i) + count);
        for (std::size_t i = 0; i < size; ++i) std::copy(all.begin(), all.end(), to(i));
        break;
      }
      case carriage::kind::reduce_scatter: {
        std::vector<std::vector<T>> all;
        for (std::size_t i = 0; i < size; ++i) all.push_back(combined(i * count));
        for (std::size_t i = 0; i < size; ++i) std::copy(all[i].begin(), all[i].end(), to(i));
        break;
      }
      case carriage::kind::all_to_all: {
        for (std::size_t giver = 0; giver < size; ++giver)
          for (std::size_t taker = 0; taker < size; ++taker)
            std::copy_n(from(giver) + taker * count, count, to(taker) + giver * count);
        break;
      }
      case carriage::kind::shift:
      case carriage::kind::shift_back:
        for (std::size_t taker = 0; taker < size; ++taker) {
          const std::size_t giver = (taker + (first.kind == carriage::kind::shift ? size - 1 : 1)) % size;
          std::copy_n(from(giver), count - first.second_count, to(taker));
          std::copy_n(static_cast<const T*>(calls.at(ranks[giver]).second_from), first.second_count,
                      static_cast<T*>(calls.at(ranks[taker]).second_to));
        }
        break;
    }
  }

  const description& about_;
  std::mutex mutex_;
  std::map<std::pair<int, std::uint64_t>, meeting> meetings_;  // by communicator and sequence number
  std::map<std::pair<int, int>, std::uint64_t> started_;  // the number of calls, by rank and communicator
};

enum class way { meeting_place, carried };

/// The losses and norms of two steps as `run` takes them, the loss of an evaluation after them, and the
/// weights of every rank.
struct outcome {
  std::vector<double> losses, norms;
  std::vector<std::vector<double>> weights;  // by rank
};

outcome of_engine(const registered& program) {
  run r(program);
  outcome out;
  for (int step = 0; step < 2; ++step) {
    const step_output o = r.step();
    out.losses.push_back(o.loss);
    out.norms.push_back(o.grad_norm);
  }
  out.losses.push_back(r.engine->evaluate());
  for (int rank = 0; rank < r.about.world(); ++rank) {
    std::vector<double>& all = out.weights.emplace_back(layout_of(r.about, rank).parameter_count);
    r.engine->read(rank, region::weights, 0, all.size(), all.data());
  }
  return out;
}

outcome of_embedded(const registered& program, way by) {
  const rankc::host::program& p = *std::get<const rankc::host::program*>(program.program);
  const description& about = p.about;
  const auto world = static_cast<std::size_t>(about.world());
  run beginning(program);  // the embedded ranks take its weights and batches
  meeting_place place;
  exchange all(about);
  std::vector<exchange::of_rank> carriages;
  for (int rank = 0; rank < about.world(); ++rank) carriages.emplace_back(all, rank);
  if (by == way::meeting_place) REQUIRE(meet(p, place).ok());

  outcome out;
  out.weights.resize(world);
  std::vector<std::string> said(world);
  std::vector<std::jthread> beside;
  std::mutex one_at_a_time;
  const auto one_rank = [&](int rank) -> status {
    embedded here;
    surroundings s{.rank = rank};
    if (by == way::meeting_place) s.others = &place;
    else s.communications = &carriages[static_cast<std::size_t>(rank)];
    s.beside = [&](std::function<void()> part) {
      const std::lock_guard lock(one_at_a_time);
      beside.emplace_back(std::move(part));
    };
    if (status st = embed(p, s, here); !st.ok()) return st;
    std::vector<double>& weights = out.weights[static_cast<std::size_t>(rank)];
    weights.resize(layout_of(about, rank).parameter_count);
    beginning.engine->read(rank, region::weights, 0, weights.size(), weights.data());
    if (status st = here.write(region::weights, 0, weights); !st.ok()) return st;

    const int dp = about.ranks[static_cast<std::size_t>(rank)].dp;
    const auto load = [&](int step) {
      const batch all_of_step =
          read_batch(about, beginning.data,
                     static_cast<std::uint64_t>(step) * static_cast<std::uint64_t>(about.global_batch()));
      const std::size_t size = about.tokens_of_microbatch();
      for (int m = 0; m < about.microbatches; ++m) {
        const std::size_t first = static_cast<std::size_t>(m * about.dp + dp) * size;
        const status st = here.set_batch(m, std::span(all_of_step.tokens).subspan(first, size),
                                         std::span(all_of_step.targets).subspan(first, size));
        if (!st.ok()) return st;
      }
      return status{};
    };
    const auto& t = about.train;
    for (int step = 0; step < 2; ++step) {
      if (status st = load(step); !st.ok()) return st;
      step_output o{};
      if (status st = here.step({3e-4, t.weight_decay, t.clip, t.beta1, t.beta2, t.eps, step + 1, t.momentum,
                                 t.nesterov, t.rounding_seed},
                                o);
          !st.ok())
        return st;
      if (rank == reporter_of(about)) {
        out.losses.push_back(o.loss);
        out.norms.push_back(o.grad_norm);
      }
      CHECK(here.has_loss() == std::isfinite(o.loss));
    }
    double loss = 0;
    if (status st = here.evaluate(loss); !st.ok()) return st;
    if (rank == reporter_of(about)) out.losses.push_back(loss);
    return here.read(region::weights, 0, weights);
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < world; ++rank)
      threads.emplace_back([&, rank] { said[rank] = one_rank(static_cast<int>(rank)).text; });
  }
  for (const std::string& text : said) CHECK(text == "");
  return out;
}

}  // namespace

TEST_CASE("embedded ranks make the bits of a trainer's") {
  int programs = 0;
  for (const registered& program : host_registry) {
    if (!program.about->trains || program.about->world() > 4) continue;
    CAPTURE(program.job);
    CAPTURE(program.layout);
    const outcome expected = of_engine(program);
    for (const way by : {way::meeting_place, way::carried}) {
      CAPTURE(static_cast<int>(by));
      const outcome got = of_embedded(program, by);
      CHECK(got.losses == expected.losses);
      CHECK(got.norms == expected.norms);
      CHECK(got.weights == expected.weights);
    }
    ++programs;
  }
  CHECK(programs == expected_of(programs, 257));
  MESSAGE(programs << " programs, each embedded in two ways");
}

}  // namespace embedded_test
