// SPDX-License-Identifier: Apache-2.0
// The GEMM algorithm choices that ranks share and a file keeps. Nothing here needs a GPU.
#include "../../../../said.hpp"
#include "../../../../../runtime/core/cuda/linear/product_choices.hpp"
#include "../../../trainer/scratch.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace rankc::runtime::cuda::test {
namespace {

namespace fs = std::filesystem;

const product_machine h200{"NVIDIA H200", 130101}, h100{"NVIDIA H100 80GB HBM3", 130101};

product_shape shape(int m, bool add = false) {
  return {.m = m,
          .n = 65536,
          .k = 768,
          .transpose_a = true,
          .transpose_b = false,
          .add = add,
          .in = CUDA_R_16BF,
          .out = CUDA_R_32F,
          .epilogue = CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
          .alignment = 256};
}

/// Each word of the algorithm differs.
product_choice choice(std::uint64_t seed, float milliseconds) {
  cublasLtMatmulAlgo_t algorithm{};
  for (std::uint64_t& word : algorithm.data) word = seed *= 0x9e3779b97f4a7c15u;
  return {algorithm, milliseconds};
}

bool same(const std::optional<cublasLtMatmulAlgo_t>& a, const std::optional<cublasLtMatmulAlgo_t>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return std::equal(std::begin(a->data), std::end(a->data), std::begin(b->data));
}

product_choice not_tuned(const std::optional<product_choice>& told) {
  REQUIRE(told);
  return *told;
}

TEST_CASE("a shape is tuned once by one of many threads, and all get that choice") {
  product_choices all;
  std::atomic<int> tuned = 0;
  std::vector<const product_choice*> got(8);
  std::vector<std::thread> ranks;
  for (std::size_t i = 0; i < got.size(); ++i)
    ranks.emplace_back([&, i] {
      got[i] = &all.of(h200, shape(3072), [&](const auto& told) {
        CHECK(!told);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return choice(static_cast<std::uint64_t>(++tuned), 0.5f);
      });
    });
  for (std::thread& t : ranks) t.join();
  CHECK(tuned == 1);
  for (const product_choice* each : got) CHECK(each == got[0]);
  CHECK(same(got[0]->algorithm, choice(1, 0.5f).algorithm));
}

TEST_CASE("where tuning throws, the next rank tunes") {
  product_choices all;
  CHECK_THROWS_AS(
      all.of(h200, shape(1), [](const auto&) -> product_choice { throw failure::reported(70, "no"); }),
      failure);
  CHECK(all.of(h200, shape(1), [](const auto&) { return choice(7, 1); }).milliseconds == 1);
}

TEST_CASE("text gives back every choice that was timed, of its machine and shape alone") {
  product_choices first;
  for (const auto& [machine, m, seed] : {std::tuple{h200, 3072, 1u}, {h200, 768, 2u}, {h100, 768, 3u}})
    first.of(machine, shape(m),
             [&, seed = seed](const auto&) { return choice(seed, 0.25f * static_cast<float>(seed)); });
  first.of(h200, shape(9), [](const auto&) { return choice(4, 0); });       // not timed
  first.of(h200, shape(10), [](const auto&) { return product_choice{}; });  // cuBLASLt has no algorithm
  product_choices second;
  second.take(first.text(), "the first");
  CHECK(second.text() == first.text());
  for (const auto& [machine, m, seed] : {std::tuple{h200, 3072, 1u}, {h200, 768, 2u}, {h100, 768, 3u}}) {
    const product_choice& got = second.of(machine, shape(m), not_tuned);
    CHECK(same(got.algorithm, choice(seed, 0).algorithm));
    CHECK(got.milliseconds == 0.25f * static_cast<float>(seed));
  }
  for (const auto& [machine, other] :
       {std::pair{h100, shape(3072)}, {h200, shape(768, true)}, {h200, shape(9)}, {h200, shape(10)}})
    second.of(machine, other, [](const auto& told) {
      CHECK(!told);
      return choice(5, 1);
    });
}

TEST_CASE("a product of eight bits is another than of 16, and text says so") {
  product_shape narrow = shape(64);
  narrow.in = CUDA_R_8F_E4M3;
  narrow.in_b = CUDA_R_8F_E5M2;
  product_shape fast = narrow;
  fast.in_b = narrow.in;
  fast.fast_sums = true;
  product_shape of_rows = fast;
  of_rows.row_factors = true;
  product_choices first, second;
  first.of(h200, shape(64), [](const auto&) { return choice(1, 1); });
  first.of(h200, narrow, [](const auto&) { return choice(2, 2); });
  first.of(h200, fast, [](const auto&) { return choice(3, 3); });
  first.of(h200, of_rows, [](const auto&) { return choice(4, 4); });
  second.take(first.text(), "the first");
  CHECK(second.text() == first.text());
  CHECK(same(second.of(h200, shape(64), not_tuned).algorithm, choice(1, 1).algorithm));
  CHECK(same(second.of(h200, narrow, not_tuned).algorithm, choice(2, 2).algorithm));
  CHECK(same(second.of(h200, fast, not_tuned).algorithm, choice(3, 3).algorithm));
  CHECK(same(second.of(h200, of_rows, not_tuned).algorithm, choice(4, 4).algorithm));
}

TEST_CASE("what other ranks chose replaces what this one did, where it is") {
  product_choices own, theirs;
  const product_choice& here = own.of(h200, shape(64), [](const auto&) { return choice(1, 1); });
  theirs.of(h200, shape(64), [](const auto&) { return choice(2, 2); });
  own.take(theirs.text(), "rank 0");
  CHECK(same(here.algorithm, choice(2, 2).algorithm));
  CHECK(own.made() == theirs.made());
  product_choices told;
  told.take(theirs.text(), "a file");
  CHECK(told.made().empty());  // no GEMM has asked for it
  CHECK(told.text() == theirs.text());
}

TEST_CASE("a line that is no choice is refused by its number") {
  product_choices known;
  known.of(h200, shape(64), [](const auto&) { return choice(1, 1); });
  const std::string good = known.text(), line = good.substr(0, good.size() - 1);
  const auto taken = [](const std::string& text) {
    return refusal_of([&] { product_choices().take(text, "products.tsv"); });
  };
  CHECK(taken(good + good) == "nothing was thrown");
  CHECK(taken(good + "NVIDIA H200\t1\n") ==
        "1: RC5134: line 2 of products.tsv is not the algorithm of a GEMM (GPU, version of cuBLASLt, shape, "
        "milliseconds, algorithm): 'NVIDIA H200\t1'; delete the file to rebuild it");
  for (const std::string& bad :
       {line.substr(0, line.size() - 1), line + "0", line + "\tmore", "\t" + line, std::string("?")})
    CHECK(taken(bad).starts_with("1: RC5134: line 1 of products.tsv is not the algorithm of a GEMM"));
}

TEST_CASE("lines of a file that cannot be read are left out with a note, and gone after the next save") {
  const scratch s;
  product_choices choices;
  choices.of(h200, shape(64), [](const auto&) { return choice(1, 1); });
  const std::string good = choices.text(), bad = "NVIDIA H200\t1\n";
  CHECK(readable_lines(good + good, "f").lines == good + good);
  CHECK(readable_lines(good, "f").note == "");
  const readable_products found = readable_lines(good + bad + bad + good, "products.tsv");
  CHECK(found.lines == good + good);
  CHECK(rankc::test::said_in(found.note) == rankc::test::said{5148, {"2", "4", "products.tsv", "2"}});
  CHECK(readable_lines(good.substr(0, good.size() / 2), "f").lines == "");  // a truncated file
  s.write("products.tsv", bad + good);
  keep_products(s.path("products.tsv"), choices);
  CHECK(open_products(s.path("products.tsv")) == good);
}

TEST_CASE("a file keeps what other jobs put there, and is made with its folder where there is none") {
  const scratch s;
  const std::string file = s.path("cache/products.tsv");
  CHECK(open_products(file).empty());
  product_choices first, second;
  first.of(h200, shape(1), [](const auto&) { return choice(1, 1); });
  second.of(h100, shape(2), [](const auto&) { return choice(2, 2); });
  keep_products(file, first);
  keep_products(file, second);
  product_choices both;
  both.take(open_products(file), file);
  CHECK(same(both.of(h200, shape(1), not_tuned).algorithm, choice(1, 1).algorithm));
  CHECK(same(both.of(h100, shape(2), not_tuned).algorithm, choice(2, 2).algorithm));
  CHECK(std::distance(fs::directory_iterator(s.path("cache")), {}) == 1);
}

TEST_CASE("a file that is a link is replaced, and what it stands for stays") {
  const scratch s;
  product_choices choices;
  choices.of(h200, shape(1), [](const auto&) { return choice(1, 1); });
  const std::string file = s.path("products.tsv");
  for (const bool hard : {false, true}) {
    s.write("kept", "");
    if (hard) fs::create_hard_link(s.path("kept"), file);
    else fs::create_symlink(s.path("kept"), file);
    keep_products(file, choices);
    CHECK(fs::file_size(s.path("kept")) == 0);
    CHECK_FALSE(fs::is_symlink(file));
    CHECK(open_products(file) == choices.text());
    fs::remove(file);
  }
}

TEST_CASE("a file that cannot be kept is refused before anything is tuned") {
  const scratch s;
  s.write("plain", "text");
  const auto check_refused = [](const std::string& file, const char* why) {
    const std::string text = refusal_of([&] { open_products(file); });
    CHECK(text.starts_with("1: RC5136: "));
    CHECK(rankc::test::said_in(text, 5005) == rankc::test::said{5005, {file, why}});
  };
  check_refused(s.path("plain/products.tsv"), "Not a directory");
  check_refused(s.path(), "Is a directory");
}

TEST_CASE("a FIFO in the place of the file is refused, and not waited for") {
  const scratch s;
  const std::string file = s.path("products.tsv");
  REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
  const auto refused = [&] {
    const std::string text = refusal_of([&] { open_products(file); });
    CHECK(text.starts_with("1: RC5136: "));
    return text;
  };
  CHECK(rankc::test::said_in(refused(), 5024) == rankc::test::said{5024, {file}});
  const int reader = ::open(file.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader >= 0);
  CHECK(rankc::test::said_in(refused(), 5135) ==
        rankc::test::said{5135, {file, "it is a FIFO, not a regular file"}});
  ::close(reader);
}

}  // namespace
}  // namespace rankc::runtime::cuda::test
