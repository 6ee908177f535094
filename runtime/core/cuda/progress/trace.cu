// SPDX-License-Identifier: Apache-2.0
#include "../device/launch.cuh"
#include "../device/teardown.hpp"
#include "marks.hpp"
#include "trace.hpp"

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>

#include <rankc/runtime/trace_events.hpp>

namespace rankc::runtime::cuda {
namespace {

__global__ void store_clock(unsigned long long* to) {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  *to = now;
}

}  // namespace

tracer::tracer(rank& r) : rank_(r) {
  check(r, cudaMalloc(&times_, most_stamps * sizeof *times_), "trace: cudaMalloc");
}

tracer::~tracer() { check_teardown(cudaFree(times_), "trace: cudaFree"); }

std::size_t tracer::stamp(const lane& on) {
  launch(on, "trace: store_clock", store_clock, 1, 1, 0, times_ + stamps_);
  return stamps_++;
}

std::size_t tracer::begin(what of, const lane& on, const char* name) {
  end_.throw_kept();
  if (stamps_ + 2 > most_stamps)
    fail(rank_,
         "RC5139: trace: the step has more than {} begin and end marks; trace a plan with fewer microbatches",
         most_stamps);
  const std::size_t now = stamp(on);
  entries_.push_back({of, &on, name, now, now});
  return entries_.size() - 1;
}

void tracer::end(std::size_t entry) noexcept {
  end_.keep_of([&] { entries_[entry].end = stamp(*entries_[entry].on); });
}

void tracer::take(std::vector<traced>& into) {
  end_.throw_kept();
  std::vector<unsigned long long> times(stamps_);
  check(rank_, cudaMemcpy(times.data(), times_, stamps_ * sizeof *times_, cudaMemcpyDeviceToHost),
        "trace: cudaMemcpy");
  const auto at = [&](std::size_t stamp) {
    return static_cast<double>(static_cast<long long>(times[stamp] - times[0])) * 1e-3;
  };
  std::size_t action = into.size();
  bool under_way = false;
  double began = 0;
  for (const entry& e : entries_) {
    switch (e.of) {
      case what::step:
      case what::action:
        if (under_way) into[action].end = at(e.begin);
        under_way = e.of == what::action;
        if (!under_way) break;
        action = into.size();
        began = at(e.begin);
        into.push_back({rank_.index, e.on->index, e.name, began, began});
        break;
      case what::wait:
        if (under_way && at(e.begin) - began < idle_before_wait) began = into[action].begin = at(e.end);
        break;
      case what::alone:
        into.push_back({rank_.index, e.on->index, e.name, at(e.begin), at(e.end)});
        break;
    }
  }
}

stamped_action::stamped_action(const lane& on, const char* name) : trace_(on.of->trace), on_(on) {
  if (on.of->place != nullptr) on.of->place->begin(on, name);
  if (trace_ != nullptr) entry_ = trace_->begin(tracer::what::alone, on, name);
  nvtxRangePushA(name);
}

stamped_action::~stamped_action() {
  nvtxRangePop();
  if (trace_ != nullptr) trace_->end(entry_);
  if (on_.of->place != nullptr) on_.of->place->end(on_);
}

void time_call(const lane& on, const void* call, const char* type,
               void (*enqueue)(const lane&, const void*)) {
  tracer& times = *on.of->calls;
  const std::size_t entry = times.begin(tracer::what::alone, on, type);
  enqueue(on, call);
  times.end(entry);
}

void begin_step(rank& r) {
  if (r.trace != nullptr) r.trace->begin(tracer::what::step, r[0], "");
}

void begin_action(const lane& on, const char* name) {
  rank& r = on;
  if (*r.action != '\0') nvtxRangePop();
  nvtxRangePushA(name);
  r.action = name;
  if (r.place != nullptr) r.place->begin(on, name);
  if (r.trace != nullptr) r.trace->begin(tracer::what::action, on, name);
}

void end_step(rank& r) {
  begin_step(r);
  if (*r.action != '\0') nvtxRangePop();
  r.action = "";
}

void name_lanes(const rank& r) {
  for (const lane& on : r.all_lanes)
    nvtxNameCudaStreamA(on.stream, ("rank " + std::to_string(r.index) + " " + on.name()).c_str());
}

}  // namespace rankc::runtime::cuda
