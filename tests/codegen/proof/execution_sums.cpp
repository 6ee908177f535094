// SPDX-License-Identifier: Apache-2.0
// The execution model's account of sums: by counting which contributions are in each.
#include "execution_model.hpp"

#include <algorithm>

namespace rankc::codegen::testing {

const sum* execution_model::find(int rank, const std::string& name) const {
  for (const sum& s : program_.ranks[rank].sums)
    if (s.name == name) return &s;
  return nullptr;
}

/// Ranks whose contributions belong into one sum, or whose tensors are shards of one.
std::vector<int> execution_model::related(int rank, const std::string& name, bool shards) const {
  std::vector<int> all{rank};
  for (std::size_t n = 0; n < all.size(); ++n)
    for (const sum& s : program_.ranks[all[n]].sums)
      for (const auto& o : s.over) {
        const bool leads =
            (s.name == name && o.as == placement::partial) || (shards && o.as == placement::sharded);
        if (!leads) continue;
        for (int r : program_.communicators[o.communicator].ranks)
          if (std::find(all.begin(), all.end(), r) == all.end()) all.push_back(r);
      }
  return all;
}

/// The number of a gradient among the tensors of the model: shards are different ones.
int execution_model::tensor(int rank, const sum& s) {
  std::string name = s.name;
  for (const auto& o : s.over) {
    const auto& ranks = program_.communicators[o.communicator].ranks;
    if (o.as == placement::sharded)
      name += "/" + std::to_string(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  }
  return tensors_.try_emplace(name, static_cast<int>(tensors_.size())).first->second;
}

/// Which ops touch the places of sums, and of what these update.
void execution_model::find_sums() {
  const auto meets = [](const byte_range& b, const access& a) { return b.begin < a.end && a.begin < b.end; };
  for (auto& o : ops_) {
    const auto& sums = program_.ranks[o.rank].sums;
    if (o.source->kind == op_kind::begin) continue;
    for (int s = 0; s < static_cast<int>(sums.size()); ++s) {
      use_of_sum use{s};
      for (int r = 0; r < static_cast<int>(o.reads.size()); ++r)
        if (meets(sums[s].at, o.source->reads[r])) use.read = r;
      for (int w = 0; w < static_cast<int>(o.writes.size()); ++w) {
        if (meets(sums[s].at, o.source->writes[w])) use.write = w;
        for (int u = 0; u < static_cast<int>(sums[s].updates.size()); ++u)
          if (meets(sums[s].updates[u], o.source->writes[w])) o.updates.emplace_back(s, u);
      }
      if (use.read >= 0 || use.write >= 0) o.sums.push_back(use);
    }
  }
}

void execution_model::expect_sums() {
  const int ranks = static_cast<int>(program_.ranks.size());
  tensor_of_.resize(ranks);
  expected_.resize(ranks);
  for (int r = 0; r < ranks; ++r)
    for (const sum& s : program_.ranks[r].sums)
      tensor_of_[r].push_back(s.kind == sum_kind::gradient ? tensor(r, s) : -1);
  for (int r = 0; r < ranks; ++r)
    for (const sum& s : program_.ranks[r].sums) {
      addends& once = expected_[r].emplace_back();
      for (int other : related(r, s.name, s.kind == sum_kind::norm)) {
        if (s.kind == sum_kind::norm)
          for (int tensor : tensor_of_[other]) {
            if (tensor >= 0) once[tensor] = 1;
          }
        else if (const sum* there = find(other, s.name)) once[other] = there->terms;
      }
    }
}

/// A compute op adds one contribution of its rank; one that makes a norm adds the tensors whose gradients it
/// reads. What else reads a sum needs it whole.
void execution_model::add_up(int i) {
  auto& o = ops_[i];
  auto& known = known_[o.rank];
  const auto& sums = program_.ranks[o.rank].sums;
  for (const auto& use : o.sums) {
    if (use.write < 0) {
      if (known[o.reads[use.read].value] != expected_[o.rank][use.sum])
        harm(o.source->name + " reads a sum that is not whole");
      continue;
    }
    addends now = use.read >= 0 ? known[o.reads[use.read].value] : addends{};
    if (sums[use.sum].kind != sum_kind::norm) ++now[o.rank];
    else
      for (const auto& other : o.sums)
        if (other.write < 0) ++now[tensor_of_[o.rank][other.sum]];
    known[o.writes[use.write].value] = now;
  }
}

void execution_model::reduce(const std::vector<int>& members) {
  const op& first = *ops_[members[0]].source;
  const auto total = [](const std::vector<access>& list) {
    std::size_t n = 0;
    for (const auto& a : list) n += a.end - a.begin;
    return n;
  };
  const auto n = static_cast<std::size_t>(
      std::max(program_.communicators[first.communicator].size, static_cast<int>(members.size())));
  std::map<std::size_t, addends> sum_of;  // of the n-th sum that each member has there
  for (int m : members) {
    const op& o = *ops_[m].source;
    const std::size_t reads = o.bytes * (o.does == collective_kind::reduce_scatter ? n : 1);
    std::size_t writes = o.bytes;
    if (o.does == collective_kind::all_gather) writes *= n;
    else if (o.does == collective_kind::all_to_all) writes *= 2;
    if (total(o.reads) != reads || total(o.writes) != writes) harm(o.name + " moves other bytes than it has");
    if (!o.reads.empty() && !o.writes.empty() && o.reads[0].type != o.writes[0].type)
      harm(o.name + " makes another type of what it reads");
    for (std::size_t k = 0; k < ops_[m].sums.size(); ++k) {
      const auto& use = ops_[m].sums[k];
      if (use.read < 0 || o.does != collective_kind::all_reduce ||
          ops_[m].sums.size() != ops_[members[0]].sums.size() ||
          program_.ranks[ops_[m].rank].sums[use.sum].name !=
              program_.ranks[ops_[members[0]].rank].sums[ops_[members[0]].sums[k].sum].name)
        ++sum_of[k][-1];  // no contribution of any sum
      else
        for (const auto& [what, times] : known_[ops_[m].rank][ops_[m].reads[use.read].value])
          sum_of[k][what] += times;
    }
  }
  for (int m : members)
    for (std::size_t k = 0; k < ops_[m].sums.size(); ++k)
      if (const auto& use = ops_[m].sums[k]; use.write >= 0)
        known_[ops_[m].rank][ops_[m].writes[use.write].value] = sum_of[k];
}

/// Weights and moments change once, by what knows their gradient and the norm; at the end of the step all
/// have.
void execution_model::check_updates(int i) {
  const auto& o = ops_[i];
  const auto& sums = program_.ranks[o.rank].sums;
  const auto reads = [&](int s) {
    return std::any_of(o.sums.begin(), o.sums.end(),
                       [&](const auto& use) { return use.sum == s && use.read >= 0; });
  };
  for (const auto& [s, u] : o.updates) {
    bool knows = reads(s);
    for (int n = 0; n < static_cast<int>(sums.size()); ++n)
      if (sums[n].kind == sum_kind::norm) knows &= reads(n);
    if (!knows) harm(o.source->name + " changes what it does not know the gradient of");
    if (++updated_[o.rank][{s, u}] > 1) harm(o.source->name + " changes again what is up to date");
  }
  if (o.source->kind != op_kind::end) return;
  for (int s = 0; s < static_cast<int>(sums.size()); ++s)
    for (int u = 0; u < static_cast<int>(sums[s].updates.size()); ++u)
      if (updated_[o.rank][{s, u}] != 1) harm("a parameter is not updated");
}

}  // namespace rankc::codegen::testing
