// SPDX-License-Identifier: Apache-2.0
// The memory of a rank's gathered weights and full gradients. Layers or stages that need it at different
// times share a place, so that one's weights are gathered while another computes.
#pragma once
#include <rankc/schedule/gather.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace rankc::lowering {

/// The places of a region. Places with a distance less than `apart` are needed at the same time and do not
/// overlap. All others may share memory.
/// Units: elements.
class gathered_places {
 public:
  explicit constexpr gathered_places(std::size_t apart) : apart_(apart) {}

  /// Makes the next elements start at the start of the place.
  constexpr void restart(std::size_t place) {
    grow(place);
    used_[place] = 0;
  }
  /// Takes elements and returns their offset from the start of their place. The start of a place is known
  /// after all elements are taken.
  constexpr std::size_t take(std::size_t place, std::size_t elements) {
    grow(place);
    const std::size_t here = used_[place];
    used_[place] += elements;
    most_[place] = std::max(most_[place], used_[place]);
    return here;
  }
  /// The start of each place. The largest place is assigned first, each as low as the places that it must not
  /// overlap allow.
  /// Shapes: (places).
  constexpr std::vector<std::size_t> begins() const {
    std::vector<std::size_t> at(most_.size(), unknown), largest_first;
    for (std::size_t p = 0; p < at.size(); ++p) largest_first.push_back(p);
    std::sort(largest_first.begin(), largest_first.end(), [&](std::size_t a, std::size_t b) {
      return most_[a] != most_[b] ? most_[a] > most_[b] : a < b;
    });
    for (const std::size_t p : largest_first) at[p] = lowest(p, at);
    return at;
  }
  constexpr std::size_t size(std::size_t place) const { return most_[place]; }
  constexpr std::size_t elements() const {
    std::size_t end = 0;
    if (apart_ >= most_.size()) {  // no two places overlap
      for (const std::size_t most : most_) end += most;
      return end;
    }
    const std::vector<std::size_t> at = begins();
    for (std::size_t p = 0; p < at.size(); ++p) end = std::max(end, at[p] + most_[p]);
    return end;
  }

 private:
  static constexpr std::size_t unknown = static_cast<std::size_t>(-1);

  constexpr std::size_t lowest(std::size_t place, const std::vector<std::size_t>& at) const {
    const std::size_t first = place < apart_ ? 0 : place - apart_ + 1,
                      end = at.size() - place < apart_ ? at.size() : place + apart_;
    std::size_t here = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t p = first; p < end; ++p)
        if (at[p] != unknown && here < at[p] + most_[p] && at[p] < here + most_[place]) {
          here = at[p] + most_[p];
          moved = true;
        }
    }
    return here;
  }
  constexpr void grow(std::size_t place) {
    if (most_.size() <= place) {
      used_.resize(place + 1, 0);
      most_.resize(place + 1, 0);
    }
  }
  std::size_t apart_;
  std::vector<std::size_t> used_, most_;
};

/// The place of each stage of a rank, for its weights from UNSHARD to RESHARD, and for its gradients from the
/// first sum to their reduction. One more place holds the tensors that several stages share. If the table has
/// no UNSHARD, no two stages share a place.
/// Shapes: weights, sums (stages of the plan).
struct stage_places {
  std::vector<int> weights, sums;
  int n_weights = 0, n_sums = 0;
};

namespace detail {

/// Assigns stages to places by the times at which they need them, in the step and in an evaluation. Each
/// stage gets the first place that no other stage needs at the same time.
class stage_colouring {
 public:
  explicit constexpr stage_colouring(int stages)
      : uses_(static_cast<std::size_t>(stages), std::vector<interval>{}) {}

  constexpr void use(int stage, int program, int first, int last) {
    uses_[static_cast<std::size_t>(stage)].push_back({program, first, last});
  }

  /// Returns the number of places.
  /// Shapes: (stages).
  constexpr int colour(std::vector<int>& places) const {
    int n = 0;
    places.assign(uses_.size(), 0);
    for (std::size_t s = 0; s < uses_.size(); ++s) {
      for (bool again = true; again;) {
        again = false;
        for (std::size_t other = 0; other < s; ++other)
          if (places[other] == places[s] && meet(uses_[other], uses_[s])) {
            again = true;
            ++places[s];
          }
      }
      n = std::max(n, places[s] + 1);
    }
    return n;
  }

 private:
  struct interval {
    int program, first, last;
  };
  static constexpr bool meet(const std::vector<interval>& some, const std::vector<interval>& others) {
    for (const interval& a : some)
      for (const interval& b : others)
        if (a.program == b.program && a.first <= b.last && b.first <= a.last) return true;
    return false;
  }
  std::vector<std::vector<interval>> uses_;
};

/// The times at which a rank uses its stages in one program. Actions that run concurrently have one time. The
/// reduction of gradients overlaps the next action.
constexpr void use_places(const action_table& t, int rank, int program, stage_colouring& weights,
                          stage_colouring& sums) {
  std::vector<int> gathered(static_cast<std::size_t>(t.stages()), -1), summed = gathered;
  int time = 0;
  for (int i = t.begin[rank]; i < t.begin[rank + 1]; ++i) {
    const action& a = t.actions[i];
    const auto stage = static_cast<std::size_t>(a.stage);
    if (a.kind == action_kind::unshard) gathered[stage] = time;
    if (a.kind == action_kind::reshard) weights.use(a.stage, program, gathered[stage], time);
    if ((a.kind == action_kind::B || a.kind == action_kind::W) && summed[stage] < 0) summed[stage] = time;
    if (a.kind == action_kind::reduce_grad && summed[stage] >= 0)
      sums.use(a.stage, program, summed[stage], time + 1);
    if (!a.overlaps_next) ++time;
  }
}

}  // namespace detail

/// The places of the stages of one rank, for the training step and the evaluation. `gathers`: the tables
/// contain UNSHARD.
constexpr stage_places places_of_stages(const action_table& step, const action_table& evaluation, int rank,
                                        bool gathers) {
  stage_places p;
  if (!gathers) {
    p.n_weights = p.n_sums = step.stages();
    for (int s = 0; s < step.stages(); ++s) {
      p.weights.push_back(s);
      p.sums.push_back(s);
    }
    return p;
  }
  detail::stage_colouring weights(step.stages()), sums(step.stages());
  detail::use_places(step, rank, 0, weights, sums);
  detail::use_places(evaluation, rank, 1, weights, sums);
  p.n_weights = weights.colour(p.weights);
  p.n_sums = sums.colour(p.sums);
  return p;
}

/// The memory of a rank's layers, in their order: gathered weights, full gradients, and arriving sums that
/// are added to others. A layer has its own place, which it keeps while its neighbours compute, or uses its
/// stage's place.
class layer_turns {
 public:
  struct place {
    std::size_t weights, sums;
  };
  gathered_places weights, sums, arriving;

  /// `gathers`: the tables contain UNSHARD.
  constexpr layer_turns(const parallel_dims& d, const action_table& step, const action_table& evaluation,
                        int rank, bool gathers)
      : weights(apart(d, static_cast<std::size_t>(d.prefetch) + 1)),
        sums(apart(d, 2)),
        arriving(2),
        by_layers_(reshards_after_layer(d)) {
    if (!by_layers_) stages_ = places_of_stages(step, evaluation, rank, gathers);
  }

  /// The place of the rank's next layer.
  constexpr place next(int stage) {
    const bool is_stage = stage != stage_;
    stage_ = stage;
    now_ = by_layers_ ? place{count_, count_}
                      : place{static_cast<std::size_t>(stages_.weights[stage]),
                              static_cast<std::size_t>(stages_.sums[stage])};
    ++count_;
    if (by_layers_ || is_stage) {
      weights.restart(now_.weights);
      sums.restart(now_.sums);
      arriving.restart(now_.sums);
    }
    return now_;
  }
  /// The place of a tensor that layers share. If layers reuse places in turn, it is the current layer's.
  constexpr place shared() const {
    return by_layers_
               ? now_
               : place{static_cast<std::size_t>(stages_.n_weights), static_cast<std::size_t>(stages_.n_sums)};
  }
  /// Takes the elements of a tensor in these places. Tensors that are not trained have no gradients.
  constexpr place take(place in, std::size_t elements, bool trained) {
    return {weights.take(in.weights, elements), sums.take(in.sums, trained ? elements : 0)};
  }
  constexpr std::size_t arrive(std::size_t elements) { return arriving.take(now_.sums, elements); }

 private:
  static constexpr std::size_t apart(const parallel_dims& d, std::size_t layers) {
    return reshards_after_layer(d) ? layers : static_cast<std::size_t>(-1);
  }
  bool by_layers_;
  std::size_t count_ = 0;
  int stage_ = -1;
  place now_{};
  stage_places stages_;
};

}  // namespace rankc::lowering
