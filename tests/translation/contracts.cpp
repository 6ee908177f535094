// SPDX-License-Identifier: Apache-2.0
#include "contracts.hpp"

#include <algorithm>
#include <string>

namespace translation {

namespace {

void expect(const std::string& what, int value, int wanted) {
  if (value == wanted) return;
  recorder& r = recorder::active();
  r.misuse_in_call(what + " is " + std::to_string(value) + " where the text's tables say " +
                   std::to_string(wanted));
}

/// The parameter that begins at an address in the weights, their working copy or the gradients; null if there
/// is none.
const runtime::parameter* parameter_at(at place) {
  const runtime::layout& where = recorder::active().where();
  const runtime::description& about = recorder::active().about();
  const std::size_t narrow = runtime::size_of(about.type), wide_size = runtime::size_of(about.wide());
  for (const runtime::parameter& p : where.parameters)
    if ((p.element < where.trained_count() && place.byte == where.gradients.byte + p.element * wide_size) ||
        ((p.element < where.trained_count() || about.bf16_weights || about.type != runtime::dtype::bf16) &&
         place.byte == where.weights.byte + p.element * (about.bf16_weights ? narrow : wide_size)) ||
        (about.type == runtime::dtype::bf16 && !about.bf16_weights &&
         place.byte == where.working_copy.byte + p.element * narrow))
      return &p;
  return nullptr;
}

}  // namespace

void expect_first_row(at table, int rows, int first) {
  const runtime::parameter* p = parameter_at(table);
  if (p) expect("the first row", first, p->shard_dim == 0 ? recorder::active().row().tp * rows : 0);
}

void expect_first_token(int tokens, int first) {
  const runtime::description& about = recorder::active().about();
  const bool is_split = tokens < about.rows * about.seq;
  if (is_split) expect("the number of tokens", tokens, about.rows * about.seq / about.tp);
  expect("the first token", first, is_split ? recorder::active().row().tp * tokens : 0);
}

/// Check the arguments of an op on sharded sequences. `neighbours`: the number of neighbouring cp ranks whose
/// chunks are together.
static void expect_shares(int tokens, int rows, int seq, int ranks, int first, int neighbours) {
  const runtime::description& about = recorder::active().about();
  expect("the number of sequences", rows, about.rows);
  expect("their length", seq, about.seq);
  expect("the ranks that share each", ranks, about.cp / neighbours);
  const int each = rows * about.chunks_of(recorder::active().row()).count() * neighbours;
  const bool is_split = tokens < each;
  if (is_split) expect("the number of tokens", tokens, each / about.tp);
  expect("the first token", first,
         recorder::active().row().cp / neighbours * each +
             (is_split ? recorder::active().row().tp * tokens : 0));
}
void expect_chunks(int tokens, int rows, int seq, int ranks, int first) {
  expect_shares(tokens, rows, seq, ranks, first, 1);
}

/// The Ulysses degree: ranks that exchange heads with this one inside a ring of groups.
static int ranks_of_group() {
  for (const runtime::lane_communicator& k : recorder::active().row().links)
    if (k.over == runtime::over::ulysses)
      return static_cast<int>(
          recorder::active().about().communicators[static_cast<std::size_t>(k.communicator)].ranks.size());
  return 1;
}

void expect_step(int tokens, int rows, int seq, int ranks, double step, int first) {
  expect_shares(tokens, rows, seq, ranks, first, ranks_of_group());
  if (!(step >= 0 && step < ranks && step == static_cast<int>(step)))
    recorder::active().misuse_in_call("it is no step of its ring");
}

void expect_first_column(int vocab, int first) {
  const bool is_split = vocab < recorder::active().about().vocab;
  expect("the first column", first, is_split ? recorder::active().row().tp * vocab : 0);
}

void expect_first_expert(int own, int first) {
  expect("the first expert", first, recorder::active().about().ep_of(recorder::active().row()) * own);
}

void expect_decay(std::span<const runtime::range> ranges) {
  for (const runtime::range& g : ranges)
    for (const runtime::parameter& p : recorder::active().where().parameters)
      if (p.element >= g.first && p.element < g.first + g.count)
        expect(std::string("the decay of ") + p.name, g.decay, p.matrix);
}

}  // namespace translation
