// SPDX-License-Identifier: Apache-2.0
// Library calls that fail: during a rank's work they become its failure; while resources are freed they print
// a line.
#include "../../../../../runtime/core/cuda/device/teardown.hpp"
#include "../../../../../runtime/core/cuda/progress/marks.hpp"
#include "../../../../../runtime/core/cuda/progress/trace.hpp"
#include "../said_by_rank.hpp"
#include "../tables.hpp"
#include "fake_cuda.hpp"

#include <rankc/runtime/cuda/context.hpp>
#include <rankc/runtime/cuda/embedded.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

namespace rankc::runtime::cuda::test {
namespace {

using rankc::test::said;
using rankc::test::said_in;

/// The calls of one function fail while the object lives.
class failing {
 public:
  explicit failing(const std::string& call) { failing_call = call; }
  ~failing() { failing_call.clear(); }
  failing(const failing&) = delete;
  failing& operator=(const failing&) = delete;
};

void step_of(rank& r) {
  begin(r[compute], "F0");
  all_reduce<float>(r[compute], over::dp, {0, "loss"}, loss_at, 1);
}
void (*const body[])(rank&) = {step_of};

struct data_parallel : tables {
  data_parallel() : tables(1, 2) { connect("dp", {0, 1}, {compute, compute}, over::dp); }
  program of() const { return {.about = about, .train = body, .evaluate = body}; }
};

/// The line begins with the failing call, alone or after the name of its resource.
void check_line(const std::vector<std::string>& lines, const std::string& call) {
  CAPTURE(call);
  REQUIRE(lines.size() == 1);
  const said line = said_in(lines.front());
  CHECK(line.id == 5150);
  REQUIRE(line.arguments.size() == 3);
  CHECK(line.arguments[0] != "0");
  CHECK(line.arguments[1].ends_with(call));
}

TEST_CASE("calls that fail while an engine is destroyed become one line") {
  const data_parallel t;
  for (const char* call :
       {"cudaEventDestroy", "cudaFreeHost", "cudaGraphExecDestroy", "cudaSetDevice", "cudaStreamDestroy",
        "ncclCommDestroy", "ncclGroupStart", "ncclGroupEnd", "ncclMemFree", "cublasLtDestroy"}) {
    std::unique_ptr<engine> e = install(t.of());
    std::vector<std::string> lines;
    {
      const failing calls(call);
      const std::function<void(const char*)> log = [&](const char* line) { lines.emplace_back(line); };
      const teardown_log to(log);
      e.reset();
    }
    check_line(lines, call);
  }
}

TEST_CASE("an engine whose calls succeed is destroyed without a line") {
  std::vector<std::string> lines;
  {
    const std::function<void(const char*)> log = [&](const char* line) { lines.emplace_back(line); };
    const teardown_log to(log);
    install(data_parallel().of());
  }
  CHECK(lines.empty());
}

TEST_CASE("a call after CUDA is unloaded has nothing to free, and is no failure") {
  std::vector<std::string> lines;
  const std::function<void(const char*)> log = [&](const char* line) { lines.emplace_back(line); };
  {
    const teardown_log to(log);
    check_teardown(cudaErrorCudartUnloading, "cudaFree");
  }
  CHECK(lines.empty());
  {
    const teardown_log to(log);
    check_teardown(cudaErrorCudartUnloading, "cudaFree");
    check_teardown(cudaErrorInvalidValue, "cudaFreeHost");
  }
  check_line(lines, "cudaFreeHost");
  CHECK(said_in(lines.front()).arguments[0] == "1");
}

/// A rank on an application's communicator, and its log lines while it is destroyed.
struct embedded_alone {
  const data_parallel plan;
  int communicator = 0;
  const ncclComm_t communicators[1]{reinterpret_cast<ncclComm_t>(&communicator)};
  std::vector<std::string> lines;
  embedded rank;

  embedded_alone() {
    surroundings given;
    given.communicators = communicators;
    given.log = [this](const char* line) { lines.emplace_back(line); };
    const status made = embed(plan.of(), given, rank);
    CAPTURE(std::string(made.text));
    REQUIRE(made.ok());
  }
  void destroy_while_sums_fail() {
    lines.clear();
    const failing calls("ncclRedOpDestroy");
    rank = {};
  }
};

TEST_CASE("an embedded rank reports them to the application's log") {
  embedded_alone one;
  one.destroy_while_sums_fail();
  check_line(one.lines, "ncclRedOpDestroy");
}

TEST_CASE(
    "an embedded rank whose step has failed makes no call of its communicators, which are aborted by then") {
  embedded_alone one;
  step_output out;
  {
    const failing calls("cudaGraphLaunch");
    CHECK(one.rank.step({1e-3, 0.1, 1, 0.9, 0.95, 1e-8, 1}, out).code == 70);
  }
  one.destroy_while_sums_fail();
  CHECK(one.lines.empty());
}

TEST_CASE("an embedded rank whose thread has no device is refused") {
  const failing calls("cudaGetDevice");
  embedded e;
  const status refused = embed(data_parallel().of(), {}, e);
  CHECK(refused.code == 1);
  CHECK(said_in(refused.text) == said{5103, {"0", "a planted error"}});
}

TEST_CASE("ranks agree on versions and memory that could be asked for") {
  const data_parallel t;
  const auto alike = [](const std::string&, const std::string& mine) { return std::vector{mine, mine}; };
  for (const char* call :
       {"cudaDeviceGetPCIBusId", "cudaMemGetInfo", "cudaRuntimeGetVersion", "ncclGetVersion"}) {
    const failing calls(call);
    CHECK(said_by_rank([&] { install(t.of(), {.rank = 1, .device = 1, .exchange = alike}); },
                       "rank 1, install: ") == said{5101, {call, "a planted error"}});
  }
}

struct one_rank {
  tables plan{1, 1};
  context owner{0, plan.about, 0};
  marks place{owner.of()};
  const lane& computes = owner.of()[compute];
  const lane& sums = owner.of()[reduce];
  one_rank() { place.enqueue(0); }
};

TEST_CASE("the launch of a mark that fails is the failure of its rank") {
  one_rank one;
  const failing calls("__cudaLaunchKernel");
  CHECK(said_by_rank([&] { one.place.begin(one.computes, "0F0"); }) ==
        said{5101, {"mark", "a planted error"}});
}

TEST_CASE("the mark of an end that fails is the failure of the next mark, or of the launch") {
  one_rank one;
  const said fault{5101, {"mark", "a planted error"}};
  const auto end = [&] {
    const failing calls("__cudaLaunchKernel");
    one.place.end(one.computes);
  };
  one.place.begin(one.computes, "0F0");
  end();
  CHECK(said_by_rank([&] { one.place.begin(one.sums, "1F0"); }) == fault);
  CHECK(said_by_rank([&] { one.place.begin(one.sums, "1F0"); }) == said{});
  end();
  CHECK(said_by_rank([&] { one.place.launch(0, 1); }) == fault);
  end();
  CHECK(said_by_rank([&] { one.place.run_enqueued(); }) == fault);
  end();
  one.place.enqueue(0);
  CHECK(said_by_rank([&] { one.place.launch(0, 1); }) == said{});
}

TEST_CASE("the launch of a stamp that fails is the failure of its rank, at the latest when times are taken") {
  one_rank one;
  const said fault{5101, {"trace: store_clock", "a planted error"}};
  tracer t(one.owner.of());
  const std::size_t entry = t.begin(tracer::what::alone, one.sums, "1F0");
  {
    const failing calls("__cudaLaunchKernel");
    CHECK(said_by_rank([&] { t.begin(tracer::what::alone, one.sums, "1F1"); }) == fault);
    t.end(entry);
  }
  std::vector<traced> times;
  CHECK(said_by_rank([&] { t.take(times); }) == fault);
}

}  // namespace
}  // namespace rankc::runtime::cuda::test
