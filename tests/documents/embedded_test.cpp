// SPDX-License-Identifier: Apache-2.0
// Documents that an application gives to embedded ranks: steps make the bits of a trainer that reads the same
// borders from an .idx file, and starts that are none are refused.
#include <doctest/doctest.h>

#include <rankc/runtime/host/embedded.hpp>

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../runtime/trainer/token_files.hpp"
#include "run.hpp"

namespace documents_embedded_test {

namespace {

using namespace rankc::runtime;
using namespace rankc::host;

const program& program_of(const registered& one) { return *std::get<const program*>(one.program); }

/// Files of Megatron with documents of 1 to 20 tokens, of which every fifth ends with the end token.
std::string write_documents(const scratch& files, int end) {
  std::vector<std::vector<std::uint16_t>> documents;
  for (int d = 0; d < 60; ++d) {
    std::vector<std::uint16_t>& tokens = documents.emplace_back();
    for (int i = 0; i <= 7 * d % 20; ++i) {
      const int other = (5 * d + 3 * i + i * i) % 7;
      tokens.push_back(static_cast<std::uint16_t>(other + (other >= end)));
    }
    if (d % 5 == 0) tokens.back() = static_cast<std::uint16_t>(end);
  }
  return megatron(files, "m", 8, documents);
}

std::vector<double> weights_of(engine& e, int rank) {
  std::vector<double> all(layout_of(e.about(), rank).parameter_count);
  e.read(rank, region::weights, 0, all.size(), all.data());
  return all;
}

step_input input_of(const description& about, int step) {
  const auto& t = about.train;
  return {1e-2, t.weight_decay, t.clip, t.beta1, t.beta2, t.eps, step};
}

/// A rank's part of a step's batch.
status set_part(embedded& here, const description& about, int rank, const batch& b) {
  const std::size_t size = about.tokens_of_microbatch();
  const int dp = about.ranks[static_cast<std::size_t>(rank)].dp;
  for (int m = 0; m < about.microbatches; ++m) {
    const std::size_t first = static_cast<std::size_t>(m * about.dp + dp) * size;
    const auto part = [&](const std::vector<std::int32_t>& all) {
      return std::span(all).subspan(first, size);
    };
    const status set = here.set_batch(m, part(b.tokens), part(b.targets), {}, part(b.document_starts));
    if (!set.ok()) return set;
  }
  return {};
}

/// The losses and norms of the steps on `batches`, and the weights of every rank after them.
struct outcome {
  std::vector<double> losses, norms;
  std::vector<std::vector<double>> weights;
  bool operator==(const outcome&) const = default;
};

outcome of_trainer(const registered& one, const std::vector<batch>& batches) {
  run r(one);
  outcome out;
  for (std::size_t step = 0; step < batches.size(); ++step) {
    set_batch(*r.engine, batches[step]);
    const step_output o = r.engine->step(input_of(r.about, static_cast<int>(step) + 1));
    out.losses.push_back(o.loss);
    out.norms.push_back(o.grad_norm);
  }
  for (int rank = 0; rank < r.about.world(); ++rank) out.weights.push_back(weights_of(*r.engine, rank));
  return out;
}

outcome of_embedded(const registered& one, const std::vector<batch>& batches) {
  const description& about = *one.about;
  const auto world = static_cast<std::size_t>(about.world());
  run beginning(one);
  meeting_place place;
  REQUIRE(meet(program_of(one), place).ok());
  outcome out;
  out.weights.resize(world);
  std::vector<std::jthread> beside;
  std::mutex one_at_a_time;
  const auto one_rank = [&](int rank) -> status {
    embedded here;
    surroundings s{.rank = rank};
    s.others = &place;
    s.beside = [&](std::function<void()> part) {
      const std::lock_guard lock(one_at_a_time);
      beside.emplace_back(std::move(part));
    };
    if (status st = embed(program_of(one), s, here); !st.ok()) return st;
    std::vector<double>& weights = out.weights[static_cast<std::size_t>(rank)];
    weights = weights_of(*beginning.engine, rank);
    if (status st = here.write(region::weights, 0, weights); !st.ok()) return st;
    for (std::size_t step = 0; step < batches.size(); ++step) {
      if (status st = set_part(here, about, rank, batches[step]); !st.ok()) return st;
      step_output o{};
      if (status st = here.step(input_of(about, static_cast<int>(step) + 1), o); !st.ok()) return st;
      if (rank != reporter_of(about)) continue;
      out.losses.push_back(o.loss);
      out.norms.push_back(o.grad_norm);
    }
    return here.read(region::weights, 0, weights);
  };
  std::vector<std::string> said(world);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < world; ++rank)
      threads.emplace_back([&, rank] { said[rank] = one_rank(static_cast<int>(rank)).text; });
  }
  for (const std::string& text : said) CHECK(text == "");
  return out;
}

}  // namespace

TEST_CASE("embedded ranks with given documents make the bits of a trainer that reads them") {
  int programs = 0;
  for (const registered& one : host_registry) {
    const description& about = *one.about;
    if (about.end_of_document < 0 || !about.trains || about.world() > 4) continue;
    CAPTURE(one.job);
    CAPTURE(one.layout);
    const scratch files;
    const dataset data(parse_data_spec(write_documents(files, about.end_of_document)), about.vocab_used,
                       about.seq);
    std::vector<batch> batches, by_token;
    for (int step = 0; step < 2; ++step) {
      batches.push_back(read_batch(about, data, static_cast<std::uint64_t>(step * about.global_batch())));
      by_token.push_back(batches.back());
      by_token.back().document_starts.clear();
    }
    const outcome expected = of_trainer(one, batches);
    CHECK((of_embedded(one, batches) == expected));
    CHECK(of_trainer(one, by_token).losses != expected.losses);
    ++programs;
  }
  CHECK(programs > 8);
  MESSAGE(programs << " programs with documents of an application");
}

TEST_CASE("starts at which no document begins are refused with their position") {
  const auto program_with = [](const std::string& job) -> const registered& {
    return *std::find_if(host_registry.begin(), host_registry.end(),
                         [&](const registered& p) { return p.job == job && p.layout == "one"; });
  };
  const registered& one = program_with("gpt");
  embedded here;
  REQUIRE(embed(program_of(one), surroundings{.rank = 0}, here).ok());
  const std::size_t count = one.about->tokens_of_microbatch();
  std::vector<std::int32_t> tokens(count, 1), starts(count, 0);
  const auto said = [&] { return std::string(here.set_batch(0, tokens, tokens, {}, starts).text); };
  CHECK(said() == "");
  starts[5] = 5;
  CHECK(said() ==
        "RC6304: element 6 of document starts is 0; expected 5, where the token before has it, or 6");
  for (std::size_t i = 5; i < 16; ++i) starts[i] = 5;
  CHECK(said() == "");
  for (const std::int32_t wrong : {-1, 4, 17, 21}) {
    starts[16 + 5] = wrong;
    CHECK(said() == "RC6304: element 21 of document starts is " + std::to_string(wrong) +
                        "; expected 0, where the token before has it, or 5");
  }
  starts[16 + 5] = 0;
  tokens[16 + 4] = one.about->end_of_document;
  CHECK(said() == "RC6304: element 21 of document starts is 0; expected 5");
  tokens[16 + 4] = 1;
  starts[16] = 1;
  CHECK(said() == "RC6304: element 16 of document starts is 1; expected 0");
  starts.pop_back();
  CHECK(said().starts_with("RC5000: the span of document starts has "));
  const registered& whole = program_with("unlimited");
  embedded other;
  REQUIRE(embed(program_of(whole), surroundings{.rank = 0}, other).ok());
  tokens.assign(whole.about->tokens_of_microbatch(), 1);
  CHECK(std::string(other.set_batch(0, tokens, tokens, {}, tokens).text) ==
        "RC6303: the plan " + std::string(whole.about->name) +
            " has no documents, so it takes no document starts; give its training an end_of_document");
}

}  // namespace documents_embedded_test
