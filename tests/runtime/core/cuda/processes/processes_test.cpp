// SPDX-License-Identifier: Apache-2.0
// The same program with its ranks as threads and as processes: the same losses and weights to the last bit,
// one voice, and exit codes that tell the rank that failed from the one that was stopped.
#include "../../../../slowness.hpp"
#include "../../../../scratch_folder.hpp"

#include <doctest/doctest.h>

#include <sys/wait.h>

#include <algorithm>
#include <chrono>
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

/// What the ranks have saved, file by file.
std::string weights_of(const fs::path& checkpoint) {
  std::string all;
  for (const char* name : {"rank_00000.safetensors", "rank_00001.safetensors"})
    all += content(checkpoint / name);
  return all;
}

/// The lines of metrics up to the times, which differ from run to run.
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
  CHECK(failed.err.find("tables: rank 0: stopped, because rank 1, install: fails on purpose\n") !=
        std::string::npos);
  CHECK(run(f, "FAIL_AT_RANK=0 HOW=signal", "train --steps 5 --launch processes").code == 128 + SIGKILL);
  const outcome fault = run(f, "FAIL_AT_RANK=1 HOW=fault", "train --steps 5 --launch processes");
  CHECK(fault.code == 70);
  CHECK(
      fault.err.find(
          "tables: rank 1, step 1: the device, after the step was launched: unspecified launch failure\n") !=
      std::string::npos);
  CHECK(std::chrono::steady_clock::now() - start < rankc::test::scaled(40));
}

#ifdef RANKC_INJECT
TEST_CASE("a rank that ends or hangs while its graph runs is named, with its place") {
  struct trial {
    std::string variables, words;
    int code;
    std::vector<std::string> said;  // by the first line
  };
  const std::string apart = " --launch processes", place = " in step 3 at update, op 2";
  // Without GPUs (fake_graphs.cpp) ranks do not wait for each other.
  const bool waits = !RANKC_TEST_WITHOUT_GPUS, all = waits || std::getenv("RANKC_TEST_ALL") != nullptr;
  const trial trials[]{
      {"", apart + " --inject rank=1,op=2,step=3,kill", 137, {"rank 1 (", "was killed by signal 9", place}},
      {"", apart + " --inject rank=1,op=2,step=3,throw", 70, {"rank 1, step 3: an exception on purpose"}},
      {"RANKC_STEP_TIMEOUT=1",
       " --inject rank=1,op=1,step=3,delay=40",
       70,
       {"tables: rank 1 is stuck in step 3 at F0, op 1, in computation or other code of its own",
        waits ? ", waited for by rank 0 (rank 0 in step 3 at F0, op 1, for \"loss\" on compute)" : ""}},
      {"RANKC_STEP_TIMEOUT=1",
       apart + " --inject rank=1,op=1,step=3,delay=40",
       70,
       {"rank 1 (", "is stuck in step 3 at F0, op 1, in computation or other code of its own",
        waits ? ", waited for by rank 0 (rank 0 in step 3 at F0, op 1, for \"loss\" on compute)" : ""}},
      {"", apart + " --inject rank=0,op=2,step=3,abort", 134, {"rank 0 (", "was killed by signal 6", place}},
      {"", apart + " --inject rank=1,op=2,step=3,exit=3", 3, {"rank 1 (", "has ended with code 3", place}},
      {"RANKC_SILENCE_TIMEOUT=2",
       apart + " --inject rank=1,op=2,step=3,stop",
       70,
       {"rank 1 (", "has given no sign of life"}},
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
    CHECK_MESSAGE(refused.err.find(f.path.string() +
                                   ": the choices of products cannot be kept there: Is a directory") !=
                      std::string::npos,
                  refused.err);
  }
}

TEST_CASE("a launcher's processes that the plan does not have are refused") {
  const scratch_folder f;
  const outcome refused = run(f, "RANK=0 LOCAL_RANK=0 WORLD_SIZE=3", "train --steps 1");
  CHECK(refused.code == 2);
  CHECK(refused.err ==
        "tables: WORLD_SIZE is 3: the plan has 2 ranks (pp 1, dp 2, tp 1); start as many processes\n");
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
