// SPDX-License-Identifier: Apache-2.0
// What becomes of the sums of a step: gradients, loss, norm. Along the order of a rank's ops each value at a
// sum's place is known by how many contributions it holds and over which communicators it is still a part of
// a sum. Contributions add up while nothing is reduced, a reduction is over a communicator that is left to
// do, and what reads a sum for another purpose finds it whole.
#include "passes.hpp"
#include "shard_groups.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <unordered_map>

namespace rankc::codegen::proof {

namespace {

/// What a value at the place of a sum holds.
struct partial_sum {
  std::size_t of;
  std::set<int> pending;  // communicators
  int terms;
  std::set<std::size_t> counted = {};  // of a norm: the gradients in it
  bool operator==(const partial_sum&) const = default;
};

class summation {
 public:
  summation(const op_table& table, int rank, findings& wrong)
      : table_(table), rank_(rank), sums_(table.program.ranks[rank].sums), wrong_(wrong) {
    for (std::size_t s = 0; s < sums_.size(); ++s) {
      places_.push_back({sums_[s].at, s, place_kind::sum});
      if (sums_[s].collected != byte_range{})
        places_.push_back({sums_[s].collected, s, place_kind::collected});
      for (const byte_range& u : sums_[s].updates) {
        places_.push_back({u, s, place_kind::update});
        updated_[u.begin] = false;
      }
      if (sums_[s].kind == sum_kind::norm) norm_ = static_cast<int>(s);
    }
    std::sort(places_.begin(), places_.end(),
              [](const place& a, const place& b) { return a.bytes < b.bytes; });
  }

  /// Ops in an order in which they can happen.
  void run(const std::vector<int>& ops) {
    for (int op : ops) {
      if (wrong_.full()) return;
      step(op);
    }
    for (const place& p : places_)
      if (p.kind == place_kind::update && !updated_[p.bytes.begin])
        wrong_.add(
            "RC7075: rank {}: the weights or moments of the {} \"{}\", bytes {}..{}, are not updated in the "
            "step",
            rank_, kind_of(p.sum), sums_[p.sum].name, p.bytes.begin, p.bytes.end);
  }

 private:
  enum class place_kind { sum, collected, update };
  struct place {
    byte_range bytes;
    std::size_t sum;
    place_kind kind;
  };

  const char* kind_of(std::size_t s) const { return sum_kind_names[static_cast<int>(sums_[s].kind)]; }
  std::string names(const std::set<int>& communicators) const {
    std::vector<std::string> all;
    for (int c : communicators) all.push_back(fmt::format("\"{}\"", table_.program.communicators[c].name));
    return fmt::format("{}", fmt::join(all, " and "));
  }
  /// The first holes of the sentence are for the rank, the op, and the kind and the name of the sum.
  template <class... T>
  void refuse(int op, std::size_t s,
              runtime::sentence<int, std::string, const char*, std::string, std::type_identity_t<T>...> about,
              const T&... facts) {
    wrong_.add(about, rank_, table_.ops[op]->name, kind_of(s), sums_[s].name, facts...);
  }

  /// The place that an access is of, whole; a part of one is refused.
  const place* find(int op, const access& a) {
    auto at = std::partition_point(places_.begin(), places_.end(),
                                   [&](const place& p) { return p.bytes.end <= a.begin; });
    if (at == places_.end() || at->bytes.begin >= a.end) return nullptr;
    if (at->bytes != byte_range{a.begin, a.end}) {
      refuse(op, at->sum,
             "RC7076: rank {}: op \"{}\" must use all bytes of the {} \"{}\", {}..{}, or none: it uses bytes "
             "{}..{}",
             at->bytes.begin, at->bytes.end, a.begin, a.end);
      return nullptr;
    }
    return &*at;
  }

  struct touched {
    std::size_t sum;
    const access* read = nullptr;
    const access* write = nullptr;
  };

  void step(int i) {
    const op& o = *table_.ops[i];
    std::vector<touched> sums;
    const auto of = [&](std::size_t s) -> touched& {
      const auto known = std::find_if(sums.begin(), sums.end(), [&](const touched& t) { return t.sum == s; });
      return known != sums.end() ? *known : sums.emplace_back(touched{s});
    };
    std::vector<std::size_t> updates;
    std::set<std::size_t> kept;  // updates that are read
    for (const access& a : o.reads)
      if (const place* p = find(i, a)) {
        if (p->kind == place_kind::update) kept.insert(p->bytes.begin);
        else of(p->sum).read = &a;
      }
    for (const access& a : o.writes)
      if (const place* p = find(i, a); p && o.kind != op_kind::begin) {
        if (p->kind == place_kind::update) {
          updates.push_back(p->sum);
          update(i, *p);
        } else of(p->sum).write = &a;
      }
    std::set<std::size_t> whole;  // sums that are read for another purpose
    for (const touched& t : sums)
      if (t.read && !t.write && check_whole(i, t)) whole.insert(t.sum);
    for (const touched& t : sums)
      if (t.write) is_contribution(o, t) ? contribute(i, t, whole) : reduce(i, t);
    check_update_reads(i, updates, whole);
    if (o.kind == op_kind::end) check_kept(i, kept);
  }

  /// Updates read their gradients and the norm. `whole`: sums that the op finds whole.
  void check_update_reads(int i, const std::vector<std::size_t>& updates,
                          const std::set<std::size_t>& whole) {
    for (std::size_t s : updates) {
      if (!whole.count(s))
        return refuse(
            i, s,
            "RC7077: rank {}: op \"{}\" updates weights or moments of the {} \"{}\" without reading it");
      if (norm_ >= 0 && !whole.count(static_cast<std::size_t>(norm_)))
        return refuse(i, s,
                      "RC7078: rank {}: op \"{}\" updates weights or moments of the {} \"{}\" without "
                      "reading the norm");
    }
  }

  void update(int i, const place& p) {
    if (updated_[p.bytes.begin])
      refuse(i, p.sum,
             "RC7079: rank {}: op \"{}\" writes weights or moments of the {} \"{}\", bytes {}..{}, after "
             "their update",
             p.bytes.begin, p.bytes.end);
    else if (table_.ops[i]->kind != op_kind::compute)
      refuse(i, p.sum,
             "RC7080: rank {}: op \"{}\" writes weights or moments of the {} \"{}\", bytes {}..{}, and is "
             "not a computation",
             p.bytes.begin, p.bytes.end);
    updated_[p.bytes.begin] = true;
  }

  void check_kept(int i, const std::set<std::size_t>& kept) {
    for (const place& p : places_)
      if (p.kind == place_kind::update && !kept.count(p.bytes.begin))
        refuse(i, p.sum,
               "RC7081: rank {}: op \"{}\" does not keep weights or moments of the {} \"{}\", bytes {}..{}",
               p.bytes.begin, p.bytes.end);
  }

  const partial_sum* known(int i, const touched& t) {
    const auto at = values_.find(t.read->value);
    if (at != values_.end() && at->second.of == t.sum) return &at->second;
    refuse(i, t.sum, "RC7082: rank {}: op \"{}\" reads the {} \"{}\" before anything has been added to it");
    return nullptr;
  }

  bool check_whole(int i, const touched& t) {
    const partial_sum* s = known(i, t);
    if (!s) return false;
    if (!s->pending.empty())
      refuse(i, t.sum, "RC7083: rank {}: op \"{}\" reads the {} \"{}\", which is not yet summed over {}",
             names(s->pending));
    else if (s->terms != sums_[t.sum].terms)
      refuse(i, t.sum, "RC7084: rank {}: op \"{}\" reads the {} \"{}\" with {} of its {} contributions",
             s->terms, sums_[t.sum].terms);
    return s->pending.empty() && s->terms == sums_[t.sum].terms;
  }

  /// Whether an access is where contributions are added up.
  bool is_collected(const touched& t, const access& a) const {
    return a.begin == place_of_terms(t.sum).begin;
  }
  const byte_range& place_of_terms(std::size_t s) const {
    return sums_[s].collected == byte_range{} ? sums_[s].at : sums_[s].collected;
  }
  placement relation(std::size_t s, int communicator) const {
    for (const auto& o : sums_[s].over)
      if (o.communicator == communicator) return o.as;
    return placement::replicated;
  }

  /// What is computed, or the sum of a microbatch that is dealt out in shards.
  bool is_contribution(const op& o, const touched& t) const {
    return o.kind == op_kind::compute ||
           (o.kind == op_kind::collective && o.does == collective_kind::reduce_scatter && !t.read &&
            relation(t.sum, o.communicator) == placement::sharded);
  }

  /// Sums are made where they lie, or dealt out to their shards' place.
  void reduce(int i, const touched& t) {
    const op& o = *table_.ops[i];
    if (o.kind != op_kind::collective)
      return refuse(
          i, t.sum,
          "RC7085: rank {}: op \"{}\" writes the {} \"{}\" and is neither a computation nor a collective");
    const auto& communicator = table_.program.communicators[o.communicator].name;
    const bool deals = relation(t.sum, o.communicator) == placement::dealt;
    const bool moves = t.read && is_collected(t, *t.read) && t.write->begin == sums_[t.sum].at.begin &&
                       t.write->replaces < 0;
    const bool stays = t.read && t.write->replaces >= 0 && t.read->begin == t.write->begin;
    if (deals && !(moves && o.does == collective_kind::reduce_scatter))
      return refuse(i, t.sum,
                    "RC7086: rank {}: op \"{}\" writes the {} \"{}\", which over communicator \"{}\" a "
                    "reduce_scatter must move from bytes {}..{} to bytes {}..{}",
                    communicator, place_of_terms(t.sum).begin, place_of_terms(t.sum).end,
                    sums_[t.sum].at.begin, sums_[t.sum].at.end);
    if (!deals && !(stays && o.does == collective_kind::all_reduce))
      return refuse(i, t.sum,
                    "RC7087: rank {}: op \"{}\" writes the {} \"{}\", which over communicator \"{}\" an "
                    "all_reduce must sum in place",
                    communicator);
    const partial_sum* before = known(i, t);
    if (!before) return;
    partial_sum after = *before;
    if (after.pending.erase(o.communicator) == 0) {
      if (after.pending.empty())
        return refuse(i, t.sum,
                      "RC7088: rank {}: op \"{}\" sums the {} \"{}\" over communicator \"{}\", but nothing "
                      "is left to sum",
                      communicator);
      return refuse(i, t.sum,
                    "RC7089: rank {}: op \"{}\" sums the {} \"{}\" over communicator \"{}\", but it is left "
                    "to sum over {}",
                    communicator, names(after.pending));
    }
    remember(i, t, after);
  }

  /// What a contribution of an op is a part of: for a norm, also of the shards that it is made from.
  std::set<int> pending_of(int i, std::size_t s, const std::set<std::size_t>& whole) {
    std::set<int> pending;
    for (const auto& [communicator, as] : sums_[s].over)
      if (as == placement::partial || as == placement::dealt) pending.insert(communicator);
    if (sums_[s].kind != sum_kind::norm) return pending;
    std::set<int> shards;
    bool first = true;
    for (std::size_t g : whole) {
      const shard_groups groups = groups_of_shards(table_.program, rank_, g);
      if (groups.count_twice)
        refuse(i, g,
               "RC7090: rank {}: op \"{}\" adds shards of the {} \"{}\" to the norm, whose sums over {} "
               "count some of "
               "them twice",
               names(groups.communicators));
      const std::set<int>& of = groups.communicators;
      if (!first && of != shards) refuse_mixture(i, s, shards, of);
      shards = of;
      first = false;
    }
    pending.insert(shards.begin(), shards.end());
    return pending;
  }
  void refuse_mixture(int i, std::size_t norm, const std::set<int>& a, const std::set<int>& b) {
    if (a.empty() || b.empty())
      return refuse(
          i, norm, "RC7091: rank {}: op \"{}\" adds to the {} \"{}\" both shards over {} and whole gradients",
          names(a.empty() ? b : a));
    refuse(i, norm, "RC7092: rank {}: op \"{}\" adds to the {} \"{}\" both shards over {} and shards over {}",
           names(a), names(b));
  }

  void contribute(int i, const touched& t, const std::set<std::size_t>& whole) {
    if (!is_collected(t, *t.write))
      return refuse(i, t.sum,
                    "RC7093: rank {}: op \"{}\" adds to the {} \"{}\" where its reduced shards lie: the "
                    "place of contributions is bytes {}..{}",
                    place_of_terms(t.sum).begin, place_of_terms(t.sum).end);
    partial_sum after{t.sum, pending_of(i, t.sum, whole), 1};
    if (sums_[t.sum].kind == sum_kind::norm) {
      after.terms = static_cast<int>(whole.size());
      after.counted = whole;
    }
    for (std::size_t g : after.counted)
      if (!sums_[g].counted)
        refuse(i, g,
               "RC7094: rank {}: op \"{}\" counts the {} \"{}\" in the norm, which another rank counts");
    if (t.read) {
      const partial_sum* before = known(i, t);
      if (!before) return;
      if (before->pending != after.pending) {
        std::set<int> done;
        std::set_difference(after.pending.begin(), after.pending.end(), before->pending.begin(),
                            before->pending.end(), std::inserter(done, done.end()));
        if (done.empty())
          return refuse(i, t.sum,
                        "RC7095: rank {}: op \"{}\" adds to the {} \"{}\", which is not yet summed over {}",
                        names(before->pending));
        return refuse(i, t.sum,
                      "RC7096: rank {}: op \"{}\" adds to the {} \"{}\" after it was summed over {}",
                      names(done));
      }
      after.terms += before->terms;
      for (std::size_t g : before->counted)
        if (!after.counted.insert(g).second)
          refuse(i, g, "RC7097: rank {}: op \"{}\" counts the {} \"{}\" in the norm twice");
    }
    remember(i, t, after);
  }

  void remember(int i, const touched& t, const partial_sum& s) {
    const auto [at, fresh] = values_.try_emplace(t.write->value, s);
    if (!fresh && !(at->second == s))
      refuse(i, t.sum,
             "RC7098: rank {}: op \"{}\" writes a value of the {} \"{}\" that another op writes with other "
             "contributions");
  }

  const op_table& table_;
  const int rank_;
  const std::vector<sum>& sums_;
  findings& wrong_;
  std::vector<place> places_;  // apart from one another
  std::unordered_map<int, partial_sum> values_;
  std::unordered_map<std::size_t, bool> updated_;  // by first byte
  int norm_ = -1;
};

}  // namespace

void check_sums(const op_table& table, const joint_events& events, const std::vector<int>& sequence,
                findings& wrong) {
  std::vector<std::vector<int>> ops(table.program.ranks.size());
  for (int event : sequence)
    for (int op : events.members[event]) ops[table.rank[op]].push_back(op);
  for (std::size_t r = 0; r < ops.size() && !wrong.full(); ++r)
    if (!table.program.ranks[r].sums.empty()) summation(table, static_cast<int>(r), wrong).run(ops[r]);
}

}  // namespace rankc::codegen::proof
