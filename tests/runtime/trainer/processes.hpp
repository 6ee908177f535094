// SPDX-License-Identifier: Apache-2.0
// Processes of one rank each, simulated by threads that exchange through memory.
#pragma once
#include <rankc/runtime/placement.hpp>

#include "fake_engine.hpp"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace rankc::runtime {

class processes {
 public:
  explicit processes(int world) : world_(static_cast<std::size_t>(world)) {}

  /// Calls `act` in each of them. Returns their results in rank order.
  std::vector<std::string> run(const std::function<std::string(const placement&)>& act) {
    std::vector<std::string> results(world_);
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < world_; ++rank)
      threads.emplace_back([&, rank] {
        placement where;
        where.rank = static_cast<int>(rank);
        where.exchange = [this, rank](const std::string& name, const std::string& mine) {
          return exchange(rank, name, mine);
        };
        results[rank] = act(where);
      });
    threads.clear();
    return results;
  }

 private:
  std::vector<std::string> exchange(std::size_t rank, const std::string& name, const std::string& mine) {
    std::unique_lock lock(mutex_);
    if (arrived_ == 0) {
      name_ = name;
      texts_.assign(world_, "");
    }
    if (name != name_) throw std::logic_error(name + " meets " + name_);
    texts_[rank] = mine;
    if (++arrived_ == world_) {
      given_ = texts_;
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
    } else changed_.wait(lock, [this, before = round_] { return round_ != before; });
    return given_;
  }

  std::size_t world_, arrived_ = 0, round_ = 0;
  std::string name_;
  std::vector<std::string> texts_, given_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

/// An engine that holds one rank, and refuses reads of other ranks.
class one_rank : public fake_engine {
 public:
  one_rank(const fake_program& program, int rank) : fake_engine(program), rank_(rank) {}
  bool holds(int rank) const override { return rank == rank_; }
  void read(int rank, region w, std::size_t first, std::size_t count, double* to) override {
    if (rank != rank_) throw std::logic_error("read of another process");
    fake_engine::read(rank, w, first, count, to);
  }

 private:
  int rank_;
};

}  // namespace rankc::runtime
