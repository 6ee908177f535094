// SPDX-License-Identifier: Apache-2.0
// An op of a layer in the cost model: its work, which a roofline times, and its collectives.
#pragma once
#include "collective.hpp"

namespace rankc::published_model {

/// Units: an element and an element of a mask in GB, a FLOP in TFLOP.
inline constexpr double element = 2e-9, mask_element = 1e-9, flop = 1e-12;

enum class axis { tp1, tp2 };

/// A collective of an op. Units: GB of the whole tensor.
struct transfer {
  collective kind = collective::sharded;
  axis over = axis::tp1;
  double volume = 0;
  int forward = 0, backward = 0;  // number of calls in each direction
};

/// Work in one direction. Units: TFLOP, GB.
struct pass {
  double flops = 0, bytes = 0;
  double vector_flops = 0;  // of an op on tensor cores: the part on vector units
};

/// An op. Units: GB.
struct op {
  std::string_view name = {};
  bool tensor_cores = false;
  double weights = 0, stored = 0;  // gradients of the weights have the same size
  int panels = 0;                  // of SUMMA: the transfers of a panel overlap the GEMM of another
  bool recomputed = false;         // runs again before its backward
  pass forward = {}, backward = {};
  transfer first = {}, second = {};
};

/// The FLOPs that tensor cores do in the time of one FLOP on vector units.
constexpr double vector_to_matrix(const gpu_system& gpu) { return gpu.matrix_flops / gpu.vector_flops; }

/// The counted FLOPs. D7: for vector work the Python counts the FLOPs that tensor cores could do in that
/// time.
constexpr double counted_flops(const setting& on, const pass& p) {
  return p.flops + p.vector_flops * (on.fix.vector_work ? 1 : vector_to_matrix(on.gpu));
}

/// The time of an op's work. Units: seconds.
struct work_time {
  double compute = 0, memory = 0;
  constexpr double total() const { return compute > memory ? compute : memory; }
  constexpr double exposed_memory() const { return memory > compute ? memory - compute : 0; }
};

constexpr work_time time_of_work(const setting& on, const op& o, const pass& p) {
  constexpr double launch = 20e-6, efficiency = 0.8;
  const double peak = o.tensor_cores ? on.gpu.matrix_flops : on.gpu.vector_flops;
  const double flops = p.flops + p.vector_flops * vector_to_matrix(on.gpu);
  return {launch + flops / (peak * efficiency), p.bytes / on.gpu.hbm_bandwidth};
}

/// Times of the collectives over both axes, under one placement.
struct axis_times {
  link_time of[2][3] = {};  // axis, kind
  constexpr double time(const transfer& t, int parts) const {
    return of[static_cast<int>(t.over)][static_cast<int>(t.kind)].of(t.volume / parts);
  }
};

constexpr axis_times times_of_axes(const setting& on, group tp1, group tp2) {
  axis_times t;
  for (int kind = 0; kind < 3; ++kind) {
    t.of[0][kind] = collective_time(on, static_cast<collective>(kind), tp1);
    t.of[1][kind] = collective_time(on, static_cast<collective>(kind), tp2);
  }
  return t;
}

/// The exposed time of transfers that take `part` for each panel, or in all without panels. D4: if panels
/// take longer than `computing`, the Python adds one panel too many.
constexpr double exposed_transfers(const setting& on, int panels, double part, double computing) {
  if (panels == 0) return part;
  const double late =
      on.fix.summa_pipeline ? (part - computing / panels) * (panels - 1) : part * panels - computing;
  return late > 0 ? part + late : part;
}

/// A value for each direction. Units: seconds.
struct both_ways {
  double forward = 0, backward = 0;
};

/// The time that an op's transfers add to `computing`.
constexpr both_ways time_of_transfers(const setting& on, const transfer& first, const transfer& second,
                                      int panels, const both_ways& computing, const axis_times& axes) {
  const int parts = panels == 0 ? 1 : panels;
  const double one = axes.time(first, parts), other = axes.time(second, parts);
  return {exposed_transfers(on, panels, one * first.forward + other * second.forward, computing.forward),
          exposed_transfers(on, panels, one * first.backward + other * second.backward, computing.backward)};
}

}  // namespace rankc::published_model
