// SPDX-License-Identifier: Apache-2.0
// Writes a certificate. Ranks that run the same ops share one listing, which has local numbers.
#include <rankc/codegen/certificate.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <unordered_map>

#include "model_schema.hpp"
#include "trusted.hpp"
#include "writer.hpp"

namespace rankc::codegen {

namespace schema {

void append_quoted(std::string& out, std::string_view text) {
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  if (std::all_of(text.begin(), text.end(), is_plain)) {
    out += '"';
    out += text;
    out += '"';
  } else {
    out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
}

}  // namespace schema

namespace {

/// Gives numbers from 0 in the order of first use.
class numbering {
 public:
  int of(int known) {
    const auto [at, fresh] = number_.try_emplace(known, static_cast<int>(meaning_.size()));
    if (fresh) meaning_.push_back(known);
    return at->second;
  }
  const std::vector<int>& meaning() const { return meaning_; }

 private:
  std::unordered_map<int, int> number_;
  std::vector<int> meaning_;
};

/// Writes numbers as runs. `step`: the difference between neighbours in a run.
template <class N>
std::vector<schema::number_run> runs_of(const std::vector<N>& numbers, N step) {
  std::vector<schema::number_run> runs;
  for (std::size_t i = 0, stop; i < numbers.size(); i = stop) {
    for (stop = i + 1; stop < numbers.size() && numbers[stop] == numbers[stop - 1] + step;) ++stop;
    runs.push_back({numbers[i], static_cast<std::int64_t>(stop - i)});
  }
  return runs;
}

/// The ops of a rank in the form of the file, made one at a time.
class listed_ops {
 public:
  listed_ops(const program& p, const verdict& v, std::size_t rank)
      : p_(p), ops_(p.ranks[rank].ops), positions_(rank < v.position.size() ? &v.position[rank] : nullptr) {}

  struct iterator {
    const listed_ops* of;
    std::size_t at;
    const schema::listed_op& operator*() const { return of->list(at); }
    iterator& operator++() {
      ++at;
      return *this;
    }
    bool operator==(const iterator& other) const { return at == other.at; }
  };
  iterator begin() const { return {this, 0}; }
  iterator end() const { return {this, ops_.size()}; }

  /// The rank's line, after all its ops have been listed.
  schema::listed_rank rank(int number, std::size_t program) const {
    return {.number = number,
            .program = static_cast<int>(program),
            .communicators = communicators_.meaning(),
            .value_runs = runs_of(values_.meaning(), 1),
            .first_runs = runs_of(firsts_, std::int64_t{0})};
  }

 private:
  const schema::listed_op& list(std::size_t at) const {
    static_cast<op&>(listed_) = ops_[at];
    listed_.position = positions_ ? (*positions_)[at] : -1;
    for (access& a : listed_.reads) a.value = values_.of(a.value);
    for (access& a : listed_.writes) a.value = values_.of(a.value);
    for (const view& v : listed_.views) firsts_.push_back(v.first);
    for (const holding& h : listed_.holds)
      for (const box_range& b : h.box) firsts_.push_back(b.first);
    if (!schema::communicates(listed_)) return listed_;
    listed_.peer = place_of_peer(listed_);
    listed_.communicator = communicators_.of(listed_.communicator);
    return listed_;
  }

  /// Index in the communicator's ranks; -1: the peer is no member.
  int place_of_peer(const op& o) const {
    if (o.communicator < 0 || o.communicator >= static_cast<int>(p_.communicators.size())) return -1;
    const std::vector<int>& ranks = p_.communicators[static_cast<std::size_t>(o.communicator)].ranks;
    const auto at = std::find(ranks.begin(), ranks.end(), o.peer);
    return at == ranks.end() ? -1 : static_cast<int>(at - ranks.begin());
  }

  const program& p_;
  const std::vector<op>& ops_;
  const std::vector<int>* positions_;  // null if the proof found none
  mutable schema::listed_op listed_;
  mutable numbering communicators_, values_;
  mutable std::vector<std::int64_t> firsts_;
};

/// A step whose programs are already JSON.
struct step_text {
  std::string name;
  kernel_set calls;
  int streams;
  std::vector<communicator> communicators;
  std::vector<schema::written> programs;
  std::vector<schema::listed_rank> ranks;
};

step_text text_of(const program& p, const verdict& v) {
  step_text s{p.step, p.calls, p.streams, p.communicators, {}, {}};
  for (communicator& c : s.communicators) c.size = c.members();
  std::unordered_map<std::string, std::size_t> known;
  for (std::size_t r = 0; r < p.ranks.size(); ++r) {
    struct {
      std::size_t arena_bytes;
      listed_ops ops;
    } const of{p.ranks[r].arena_bytes, {p, v, r}};
    std::string text;
    schema::writer::write_struct<schema::program_schema>(text, of);
    const auto [at, fresh] = known.try_emplace(text, known.size());
    if (fresh) s.programs.push_back({std::move(text)});
    s.ranks.push_back(of.ops.rank(p.number_of(static_cast<int>(r)), at->second));
  }
  return s;
}

/// The certificate of steps of one plan.
std::string certificate_text(const program& of, std::vector<step_text> steps, specification model) {
  std::erase_if(model.rows, [](const specification::row_facts& r) { return !r.unknown.empty(); });
  const struct {
    std::string format, plan, plan_hash;
    std::vector<std::string_view> trusted;
    int world;
    std::vector<listed_axis> mesh;
    specification model;
    std::vector<step_text> steps;
  } file{schema::format,
         of.plan,
         fmt::format("{:016x}", of.plan_hash),
         {std::begin(trusted), std::end(trusted)},
         of.world_size(),
         of.mesh,
         std::move(model),
         std::move(steps)};
  std::string text;
  schema::writer f(text, false, true);
  schema::file_schema::list(f, file);
  f.finish();
  return text + '\n';
}

}  // namespace

bool is_certificate(std::string_view beginning) {
  return beginning.starts_with("{\n\"format\": \"rankc certificate ");
}

std::string certificate(const std::vector<proven>& steps, const specification& model) {
  std::vector<step_text> texts;
  for (const proven& s : steps) texts.push_back(text_of(s.program, s.verdict));
  return certificate_text(steps.at(0).program, std::move(texts), model);
}

std::string certificate(const program& p, const verdict& v) { return certificate({{p, v}}, {}); }

}  // namespace rankc::codegen
