// SPDX-License-Identifier: Apache-2.0
#include "mutate_program.hpp"

#include <algorithm>
#include <random>
#include <utility>

namespace translation {

using rankc::codegen::access;
using rankc::codegen::op;
using rankc::codegen::op_kind;
using rankc::codegen::program;

namespace {

/// Changes one drawn op. Each change describes itself, or is empty if it does not apply.
class planter {
 public:
  planter(program& p, int seed) : random_(static_cast<unsigned>(seed)), p_(p) {
    rank_ = below(p.ranks.size());
    at_ = below(ops().size());
  }

  program_fault run() {
    using change = std::string (planter::*)();
    constexpr change changes[]{
        &planter::drop_op,       &planter::double_op,    &planter::exchange_ops, &planter::shift_access,
        &planter::cut_access,    &planter::drop_access,  &planter::add_access,   &planter::drop_wait,
        &planter::add_wait,      &planter::other_stream, &planter::other_call,   &planter::shift_operand,
        &planter::swap_operands, &planter::other_site,   &planter::other_bytes,  &planter::other_communicator,
        &planter::other_peer,    &planter::other_way,    &planter::other_arena,  &planter::other_kind};
    const std::string did = (this->*changes[below(std::size(changes))])();
    if (did.empty()) return {};
    return {static_cast<int>(rank_),
            did + " at op " + std::to_string(at_) + " of rank " + std::to_string(rank_)};
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  std::vector<op>& ops() { return p_.ranks[rank_].ops; }
  op& here() { return ops()[at_]; }
  bool is_call() { return !here().function.empty(); }
  bool communicates() { return here().communicator >= 0; }
  std::vector<access>& side() { return random_() % 2 ? here().reads : here().writes; }

  /// Update the waits after ops have moved: `to` has each op's new index, or -1 if it is gone.
  void renumber(const std::vector<int>& to) {
    for (op& o : ops()) {
      std::erase_if(o.waits, [&](int w) { return to[static_cast<std::size_t>(w)] < 0; });
      for (int& w : o.waits) w = to[static_cast<std::size_t>(w)];
    }
  }
  std::vector<int> places() {
    std::vector<int> to(ops().size());
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<int>(i);
    return to;
  }

  std::string drop_op() {
    if (!is_call()) return "";
    std::vector<int> to = places();
    to[at_] = -1;
    for (std::size_t i = at_ + 1; i < to.size(); ++i) --to[i];
    ops().erase(ops().begin() + static_cast<std::ptrdiff_t>(at_));
    renumber(to);
    return "an op is dropped";
  }
  std::string double_op() {
    if (!is_call()) return "";
    std::vector<int> to = places();
    for (std::size_t i = at_ + 1; i < to.size(); ++i) ++to[i];
    ops().insert(ops().begin() + static_cast<std::ptrdiff_t>(at_), op(here()));
    renumber(to);
    return "an op is doubled";
  }
  std::string exchange_ops() {
    if (!is_call() || at_ + 1 == ops().size() || ops()[at_ + 1].function.empty()) return "";
    std::vector<int> to = places();
    std::swap(to[at_], to[at_ + 1]);
    std::swap(ops()[at_], ops()[at_ + 1]);
    renumber(to);
    return "two ops are exchanged";
  }
  std::string shift_access() {
    std::vector<access>& list = side();
    if (list.empty()) return "";
    // Equal accesses move, too: they are columns of the same rows.
    const access moved = list[below(list.size())];
    for (access& a : list)
      if (a == moved) {
        a.begin += 4;
        a.end += 4;
      }
    return "an access is shifted";
  }
  std::string cut_access() {
    std::vector<access>& list = side();
    if (list.empty()) return "";
    list[below(list.size())].end -= 4;
    return "an access is cut";
  }
  std::string drop_access() {
    std::vector<access>& list = side();
    if (list.empty()) return "";
    const access gone =
        list[below(list.size())];  // equal accesses go, too: there is one for each operand that reads it
    std::erase_if(list, [&](const access& a) { return a.begin == gone.begin && a.end == gone.end; });
    return "an access is dropped";
  }
  std::string add_access() {
    const std::size_t end = p_.ranks[rank_].arena_bytes;
    side().push_back({end, end + 4, 0});
    return "an access is added";
  }
  std::string drop_wait() {
    if (here().waits.empty()) return "";
    here().waits.erase(here().waits.begin() + static_cast<std::ptrdiff_t>(below(here().waits.size())));
    return "a wait is dropped";
  }
  std::string add_wait() {
    if (at_ == 0) return "";
    const int w = static_cast<int>(below(at_));
    if (ops()[static_cast<std::size_t>(w)].function.empty()) return "";
    if (std::find(here().waits.begin(), here().waits.end(), w) != here().waits.end()) return "";
    here().waits.push_back(w);
    return "a wait is added";
  }
  std::string other_stream() {
    if (!is_call()) return "";
    here().stream = (here().stream + 1) % p_.streams;
    return "the stream is another";
  }
  std::string other_call() {
    if (!is_call()) return "";
    here().function += "_other";
    return "the call is another";
  }
  std::string shift_operand() {
    if (here().operands.empty()) return "";
    here().operands[below(here().operands.size())] += 4;
    return "an operand is shifted";
  }
  std::string swap_operands() {
    std::vector<std::size_t>& list = here().operands;
    if (list.size() < 2) return "";
    const std::size_t i = below(list.size() - 1);
    if (list[i] == list[i + 1]) return "";
    std::swap(list[i], list[i + 1]);
    return "two operands are swapped";
  }
  std::string other_site() {
    if (!communicates()) return "";
    ++here().message;
    return "the site is another";
  }
  std::string other_bytes() {
    if (!communicates()) return "";
    here().bytes += 4;
    return "the bytes are others";
  }
  std::string other_communicator() {
    if (!communicates()) return "";
    here().communicator = (here().communicator + 1) % static_cast<int>(p_.communicators.size());
    return p_.communicators.size() > 1 ? "the communicator is another" : "";
  }
  std::string other_peer() {
    if (here().peer < 0) return "";
    here().peer = (here().peer + 1) % static_cast<int>(p_.ranks.size());
    return "the peer is another";
  }
  std::string other_way() {
    if (here().kind != op_kind::collective) return "";
    here().by_rows = here().by_rows > 0 ? 0 : 1;
    return "a collective moves rows beside a product, or no longer";
  }
  std::string other_arena() {
    p_.ranks[rank_].arena_bytes += 4;
    return "the arena is larger";
  }
  std::string other_kind() {
    if (!is_call()) return "";
    here().kind = communicates() ? op_kind::compute : op_kind::collective;
    return "the kind is another";
  }

  std::mt19937 random_;
  program& p_;
  std::size_t rank_ = 0, at_ = 0;
};

}  // namespace

program_fault plant(program& p, int seed) { return planter(p, seed).run(); }

}  // namespace translation
