// SPDX-License-Identifier: Apache-2.0
// Forged programs that compute the model from the rows that they say, and begin with other rows when the
// runtime loads them.
#include <doctest/doctest.h>

#include "checker.hpp"
#include "mutants.hpp"
#include "opinions.hpp"

#include <rankc/codegen/proven_calls.hpp>
#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

#include <functional>

#include "../../../../said.hpp"

namespace field {

namespace {

using namespace rankc::codegen;

rankc::plan_data plan_of(const rankc::parallel_dims& dims, const rankc::training& more = {}) {
  using namespace rankc;
  training recipe = more;
  recipe.seq = 4;
  recipe.global_batch = 4;
  recipe.precision = f64;
  constexpr models::gpt2 gpt{.layers = 2, .hidden = 8, .heads = 2, .ffn = 12, .vocab = 12};
  return make_plan("rows", gpt, dims, schedules::gpipe{.microbatches = 2}, recipe, clusters::cpu);
}

/// Requires that a forged program is right for the rows that it says, wrong for those that are loaded, and
/// refused by the sentence of this id.
void check_forged(const rankc::plan_data& plan, int id, const std::function<void(program&)>& forge) {
  for (subject& s : subjects_of(plan, dtype::f64, target::host)) {
    CAPTURE(s.name);
    const auto exact = execution::over_field(s.model);
    CHECK(check_terms(s.program, s.model) == "");
    CHECK(exact->run(s.program, 0, s.loads.get()).equal);
    const std::vector<step_hash> proven = hash_calls(s.program);
    forge(s.program);
    CHECK(prove(s.program).ok);
    CHECK(exact->run(s.program).equal);
    CHECK_FALSE(exact->run(s.program, 0, s.loads.get()).equal);
    CHECK_FALSE(execution::in_f64(s.model)->run(s.program, 0, s.loads.get()).equal);
    const std::string why = check_terms(s.program, s.model);
    CHECK_MESSAGE(rankc::test::said_in(why).id == id, why);
    CHECK(hash_calls(s.program)[0].hash != proven[0].hash);
  }
}

op& find_message(program& p, int rank, op_kind kind, const std::string& name) {
  for (op& o : p.ranks[static_cast<std::size_t>(rank)].ops)
    if (o.kind == kind && o.name.starts_with(name)) return o;
  throw std::logic_error("no message is called " + name);
}

/// A message of a microbatch: "F1: stage 0 -> 1".
struct end_of_message {
  int rank, microbatch;
};

/// Gives the message of one rank to another rank than the plan does.
class rerouter {
 public:
  explicit rerouter(program& p) : p_(p), before_(p) {}

  void send(char direction, end_of_message from, end_of_message to) {
    const auto name = [=](const end_of_message& e) { return direction + std::to_string(e.microbatch) + ":"; };
    op &out = find_message(p_, from.rank, op_kind::send, name(from)),
       &in = find_message(p_, to.rank, op_kind::receive, name(to));
    const op was = find_message(before_, to.rank, op_kind::receive, name(to));
    communicator pair{"pair " + std::to_string(p_.communicators.size()), {from.rank, to.rank}};
    std::sort(pair.ranks.begin(), pair.ranks.end());
    out.communicator = in.communicator = static_cast<int>(p_.communicators.size());
    p_.communicators.push_back(pair);
    out.peer = to.rank;
    in.peer = from.rank;
    in.message = out.message;
    in.name = out.name;
    for (op& o : p_.ranks[static_cast<std::size_t>(to.rank)].ops)
      for (auto* accesses : {&o.reads, &o.writes})
        for (rankc::codegen::access& a : *accesses)
          if (a.value == was.writes[0].value) a.value = out.reads[0].value;
  }

 private:
  program& p_;
  program before_;
};

/// Each rank of the first stage has neighbouring sequences as its two microbatches. Hidden states, and their
/// gradients, go to the ranks that have the targets of these sequences.
void take_neighbouring_sequences(program& p) {
  for (int rank = 0; rank < 2; ++rank) {
    int microbatch = 0;
    for (holding& h : p.ranks[static_cast<std::size_t>(rank)].ops.front().holds)
      if (h.kind == holding_kind::ids) h.box[0].first = (2 * rank + microbatch++) * h.box[0].count;
  }
  rerouter to(p);
  to.send('F', {0, 1}, {3, 0});
  to.send('F', {1, 0}, {2, 1});
  if (p.step == "evaluate") return;
  to.send('B', {3, 0}, {0, 1});
  to.send('B', {2, 1}, {1, 0});
}

}  // namespace

TEST_CASE("the runtime loads the rows that lowered programs say") {
  for (const auto& plans : {masked_plans(), weighted_plans(), windowed_plans(), apart_plans()})
    for (const rankc::plan_data& plan : plans) {
      const subject s = subject_of(plan, 2);
      CAPTURE(s.name);
      CHECK(execution::over_field(s.model)->run(s.program, 0, s.loads.get()).difference == "");
    }
}

TEST_CASE("forged: ranks of dp have each other's places on another axis") {
  const auto exchanged = [](program& p) { exchange_places(p, 1, 2); };
  check_forged(plan_of({.world = 4, .dp_replicate = 2, .tp = 2}), 7797, exchanged);
  check_forged(plan_of({.world = 4, .dp_shard = 2, .tp = 2}), 7797, exchanged);
  check_forged(plan_of({.world = 4, .dp_replicate = 2, .tp = 2}), 7797, [](program& p) {
    exchange_places(p, 1, 2);
    exchange_places(p, 2, 3);
  });
}

TEST_CASE("forged: token ids meet targets of another microbatch") {
  check_forged(plan_of({.world = 4, .dp_replicate = 2, .pp = 2}), 7801, take_neighbouring_sequences);
}

}  // namespace field
