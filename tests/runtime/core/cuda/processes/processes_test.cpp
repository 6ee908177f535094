// SPDX-License-Identifier: Apache-2.0
// The same program with its ranks as threads and as processes: the same losses and weights to the last bit,
// one process that prints, and exit codes that distinguish the failed rank from the stopped one.
#include "../../../../said.hpp"
#include "../../../../scratch_folder.hpp"
#include "../../../../slowness.hpp"

#include <doctest/doctest.h>

#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using rankc::scratch_folder;
using rankc::test::said;
using rankc::test::said_in;

struct outcome {
  int code;
  std::string out, err;
};

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

outcome run(const scratch_folder& f, const std::string& variables, const std::string& words) {
  const std::string out = (f.path / "out").string(), err = (f.path / "err").string();
  const int status = std::system(("env XDG_CACHE_HOME=" + f.path.string() + " " + variables + " timeout " +
                                  std::to_string(rankc::test::scaled(50).count()) +
                                  " " RANKC_TEST_PROGRAM " " + words + " >" + out + " 2>" + err)
                                     .c_str());
  return {WEXITSTATUS(status), content(out), content(err)};
}

/// The content of the ranks' checkpoint, file by file.
std::string weights_of(const fs::path& checkpoint) {
  std::string all;
  for (const char* name : {"rank_00000.safetensors", "rank_00001.safetensors"})
    all += content(checkpoint / name);
  return all;
}

/// The metrics' lines up to the times, which differ from run to run.
std::string losses(const fs::path& metrics) {
  std::ifstream in(metrics);
  std::string all, line;
  while (std::getline(in, line)) all += line.substr(0, line.find("\"step_ms\"")) + "\n";
  return all;
}

TEST_CASE("processes give the same losses and weights as threads") {
  const scratch_folder f;
  std::string wanted_losses, wanted_weights;
  for (const char* launch : {"threads", "processes"}) {
    CAPTURE(launch);
    const fs::path metrics = f.path / (std::string(launch) + ".jsonl"), save = f.path / launch;
    const outcome done = run(f, "",
                             std::string("train --steps 5 --launch ") + launch + " --metrics " +
                                 metrics.string() + " --save " + save.string());
    CAPTURE(done.err);
    REQUIRE(done.code == 0);
    CHECK(done.out.find("saved") == done.out.rfind("saved"));
    const std::string lines = losses(metrics), weights = weights_of(save / "step_000005");
    CHECK(std::count(lines.begin(), lines.end(), '\n') == 5);
    CHECK(weights.size() > 64 * sizeof(float));
    if (wanted_losses.empty()) {
      wanted_losses = lines;
      wanted_weights = weights;
    }
    CHECK(lines == wanted_losses);
    CHECK(weights == wanted_weights);
  }
}

TEST_CASE("the rank that fails gives the exit code, and the other is stopped at once") {
  const scratch_folder f;
  const auto start = std::chrono::steady_clock::now();
  const outcome failed = run(f, "FAIL_AT_RANK=1 HOW=throw", "train --steps 5 --launch processes");
  CHECK(failed.code == 70);
  CHECK(failed.err.find("tables: rank 1, install: fails on purpose\n") != std::string::npos);
  CHECK(failed.err.find("tables: rank 0: RC5327: ") != std::string::npos);
  CHECK(said_in(failed.err, 5327) == said{5327, {"rank 1, install: fails on purpose"}});
  CHECK(run(f, "FAIL_AT_RANK=0 HOW=signal", "train --steps 5 --launch processes").code == 128 + SIGKILL);
  const outcome fault = run(f, "FAIL_AT_RANK=1 HOW=fault", "train --steps 5 --launch processes");
  CHECK(fault.code == 70);
  CHECK(fault.err.find("tables: rank 1, step 1: RC5126: ") != std::string::npos);
  CHECK(said_in(fault.err, 5126) == said{5126, {"unspecified launch failure", "compute: F0"}});
  CHECK(std::chrono::steady_clock::now() - start < rankc::test::scaled(40));
}

#ifdef RANKC_INJECT
TEST_CASE("a rank that ends or hangs while its graph runs is named, with its place") {
  struct trial {
    std::string variables, words;
    int code;
    std::vector<std::string> said;  // in the first line
  };
  const std::string apart = " --launch processes", place = " in step 3 at update, op 2";
  // Without GPUs (fake_graphs.cpp) ranks do not wait for each other.
  const bool waits = !RANKC_TEST_WITHOUT_GPUS, all = waits || std::getenv("RANKC_TEST_ALL") != nullptr;
  const trial trials[]{
      {"", apart + " --inject rank=1,op=2,step=3,kill", 137, {"RC5302: rank 1 (", " signal 9 ", place}},
      {"", apart + " --inject rank=1,op=2,step=3,throw", 70, {"rank 1, step 3: RC5055: "}},
      {"RANKC_STEP_TIMEOUT=1",
       " --inject rank=1,op=1,step=3,delay=40",
       70,
       {"tables: RC5354: ", "RC5353: rank 1 is stuck in step 3 at F0, op 1, ",
        waits ? "RC5351: these ranks wait for rank 1: 0. Rank 0 waits in step 3 at F0, op 1 for \"loss\" "
                "(communicator dp of ranks 0 and 1) on compute"
              : ""}},
      {"RANKC_STEP_TIMEOUT=1",
       apart + " --inject rank=1,op=1,step=3,delay=40",
       70,
       {"RC5353: rank 1 (", " in step 3 at F0, op 1, ",
        waits ? "RC5351: these ranks wait for rank 1: 0. Rank 0 waits in step 3 at F0, op 1 for \"loss\" "
                "(communicator dp of ranks 0 and 1) on compute"
              : ""}},
      {"", apart + " --inject rank=0,op=2,step=3,abort", 134, {"RC5302: rank 0 (", " signal 6 ", place}},
      {"", apart + " --inject rank=1,op=2,step=3,exit=3", 3, {"RC5303: rank 1 (", " code 3 ", place}},
      {"RANKC_SILENCE_TIMEOUT=2", apart + " --inject rank=1,op=2,step=3,stop", 70, {"RC5347: rank 1 ("}},
  };
  for (const trial& t : std::span(trials).first(all ? std::size(trials) : 3)) {
    const scratch_folder f;
    const auto start = std::chrono::steady_clock::now();
    const outcome ended = run(f, t.variables, "train --steps 5" + t.words);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("%s: %.1f s: %s\n", t.words.c_str(), seconds,
                ended.err.substr(0, ended.err.find('\n')).c_str());
    CAPTURE(t.words);
    CAPTURE(ended.err);
    CHECK(ended.code == t.code);
    for (const std::string& text : t.said)
      CHECK(ended.err.substr(0, ended.err.find('\n')).find(text) != std::string::npos);
    CHECK(seconds < rankc::test::scaled(25).count());
  }
}
#endif

TEST_CASE("a collective that hangs in the install is named, with its rank and communicator" *
          doctest::skip(!RANKC_TEST_WITHOUT_GPUS)) {  // fake_graphs.cpp hangs on purpose
  const std::string held = "\"check of all_reduce\" (communicator dp of ranks 0 and 1)";
  const scratch_folder f;
  const std::string limit =
      "RANKC_EXCHANGE_TIMEOUT=" + std::to_string(rankc::test::scaled(2).count()) + " HANG_AT_RANK=";
  const outcome threads = run(f, limit + "all", "train --steps 2");
  CAPTURE(threads.err);
  CHECK(threads.code == 70);
  CHECK(threads.err.find(", install: RC5147: ") != std::string::npos);
  CHECK(said_in(threads.err, 5147).arguments.at(1) == "compute: " + held);

  const outcome apart = run(f, limit + "1", "train --steps 2 --launch processes");
  CAPTURE(apart.err);
  CHECK(apart.code == 70);
  CHECK(said_in(apart.err, 5349) ==
        said{5349,
             {"algorithms of products 2", std::to_string(std::lround(rankc::test::scaled(2).count())), "1",
              "1", "in the install (collectives) and waits for " + held + " on compute"}});
}

TEST_CASE("calls that fail while resources are freed are a note below all other lines" *
          doctest::skip(!RANKC_TEST_WITHOUT_GPUS)) {  // fake_cuda.cpp has them fail
  const scratch_folder f;
  const outcome done = run(f, "RANKC_FAKE_FAILS=ncclCommDestroy", "train --steps 2");
  CAPTURE(done.err);
  CHECK(done.code == 0);
  CHECK(done.err.starts_with("note: "));
  CHECK(said_in(done.err) == said{5150, {"2", "ncclCommDestroy", "a planted error"}});

  const outcome failed =
      run(f, "FAIL_AT_RANK=1 HOW=throw RANKC_FAKE_FAILS=cublasLtDestroy", "train --steps 2");
  CAPTURE(failed.err);
  CHECK(failed.code == 70);
  CHECK(failed.err.starts_with("tables: rank 1, install: fails on purpose\n"));
  CHECK(said_in(failed.err, 5150) == said{5150, {"2", "cublasLtDestroy", "a planted error"}});
}

TEST_CASE("choices of products are kept in the user's cache, or where --products says") {
  const scratch_folder f;
  const fs::path cache = f.path / "rankc" / "products.tsv", own = f.path / "own.tsv";
  for (const std::string launch : {" --launch processes", ""}) {
    CAPTURE(launch);
    CHECK(run(f, "", "train --steps 2 --products none" + launch).code == 0);
    CHECK(!fs::exists(cache));
    CHECK(run(f, "", "train --steps 2 --products " + own.string() + launch).code == 0);
    CHECK(!fs::exists(cache));
    CHECK(fs::exists(own));
    CHECK(run(f, "", "train --steps 2" + launch).code == 0);
    CHECK(fs::exists(cache));
    fs::remove(own);
    fs::remove(cache);
    const outcome refused = run(f, "", "train --steps 2 --products " + f.path.string() + launch);
    CHECK(refused.code == 1);
    CHECK(refused.err.find("RC5136: ") != std::string::npos);
    CHECK(said_in(refused.err, 5005) == said{5005, {f.path.string(), "Is a directory"}});
  }
}

TEST_CASE("a launcher's processes that the plan does not have are refused") {
  const scratch_folder f;
  const outcome refused = run(f, "RANK=0 LOCAL_RANK=0 WORLD_SIZE=3", "train --steps 1");
  CHECK(refused.code == 2);
  CHECK(refused.err.starts_with("tables: RC5334: "));
  CHECK(said_in(refused.err) == said{5334, {"WORLD_SIZE", "3", "2", "1", "2", "1", "1"}});
}

TEST_CASE("a launcher's variables make each process one rank") {
  const scratch_folder f;
  const std::string both = "XDG_CACHE_HOME=" + f.path.string() +
                           " OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=job7 sh -c '"
                           "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_LOCAL_RANK=1 " RANKC_TEST_PROGRAM
                           " train --steps 2 & "
                           "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_RANK=0 " RANKC_TEST_PROGRAM
                           " train --steps 2; wait $!'";
  const std::string out = (f.path / "out").string();
  const int status = std::system((both + " >" + out + " 2>&1").c_str());
  CHECK(WEXITSTATUS(status) == 0);
  const std::string text = content(out);
  CAPTURE(text);
  CHECK(text.find("weights: hash:1") != std::string::npos);
  CHECK(text.find("weights: hash:1") == text.rfind("weights: hash:1"));
}

}  // namespace
