// SPDX-License-Identifier: Apache-2.0
// Creates, destroys and aborts the communicators.
#include "communicators.hpp"

#include "adopted.hpp"
#include "../device/arena.hpp"
#include "../device/check.hpp"
#include "../device/teardown.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace rankc::runtime::cuda {
namespace {

using namespace std::chrono_literals;

/// The rank's link for a communicator of the description, and its row in the program's tables.
lane_link& link_of(rank& r, int group_index) {
  if (lane_link* const found = r.find_link(group_index)) return *found;
  fail(r, "RC5121: no lane of this rank has communicator {}", group_index);
}
const lane_communicator& row_of(const rank& r, int group_index) {
  const auto& rows = r.row->links;
  return *std::find_if(rows.begin(), rows.end(),
                       [&](const lane_communicator& k) { return k.communicator == group_index; });
}

/// One group of calls, which take effect together at `end`.
class group {
 public:
  group(const rank& r, std::string name) : r_(r), name_(std::move(name)) {
    check(r_, ncclGroupStart(), nullptr, name_ + ": ncclGroupStart");
  }
  void add(context& member, ncclComm_t of, ncclResult_t status, const char* call) {
    if (status != ncclInProgress) check(member.of(), status, of, name_ + ": " + call);
  }
  void end() {
    const ncclResult_t status = ncclGroupEnd();
    if (status != ncclInProgress) check(r_, status, nullptr, name_ + ": ncclGroupEnd");
  }

 private:
  const rank& r_;
  const std::string name_;
};

ncclConfig_t plain_config() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.maxCTAs = most_blocks;
  return config;
}
/// By default NCCL uses 5 to 8 blocks for collectives of symmetric windows. That is too few for an overlap
/// with computation (dp of two H100s: 456 ms a step, with 12 blocks 450). It is much too few if computation
/// waits (tp: with 8 blocks 249 ms, with 32 238; on another pair with 16 241, with 32 240 and 400 MiB more).
/// All-gathers of shards that overlap computation use copy engines, if NCCL supports that. Their
/// reduce-scatters may take as long as a layer and use few blocks (FSDP of four H200s: with 32 blocks at most
/// 1,500 ms a step, with 8 1,481, with 4 1,489, with 2 1,509).
ncclConfig_t config_of(const context& owner, const lane_communicator& of) {
  ncclConfig_t config = plain_config();
  const bool is_waited_for = owner.of()[of.lane].computes();
  config.maxCTAs = most_blocks_of(of.over, is_waited_for);
  switch (of.over) {
    case over::tp:
    case over::cp:
    case over::etp:
      if (is_waited_for) config.minCTAs = most_blocks;
      break;
    case over::shard:
    case over::efsdp:
      if (is_waited_for) break;
      config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
      break;
    case over::dp:
      if (!is_waited_for) config.minCTAs = least_blocks_of_sums;
      break;
    default:
      break;
  }
  return config;
}

void use_device_of(context& c) { check(c.of(), cudaSetDevice(c.device()), "cudaSetDevice"); }

void wait_for(context& c, ncclComm_t of, const std::string& call) { check(c.of(), ncclInProgress, of, call); }

}  // namespace

communicators::communicators(const description& about, const std::vector<std::unique_ptr<context>>& ranks,
                             const peer_edges* edges, const placement& where)
    : about_(about), ids_(about.communicators.size() + 1) {
  prepare_nccl();
  const auto make_id = [&](std::size_t g, int first) {
    if (context* maker = ranks[static_cast<std::size_t>(first)].get())
      check(maker->of(), ncclGetUniqueId(&ids_[g]), nullptr, "ncclGetUniqueId");
  };
  const int groups = static_cast<int>(about.communicators.size());
  try {
    for (std::size_t g = 0; g < about.communicators.size(); ++g) make_id(g, about_.communicators[g].ranks[0]);
    if (where.meets_others()) {
      make_id(about.communicators.size(), 0);
      exchange_ids(where);
      join_all(*ranks[static_cast<std::size_t>(where.rank)]);
    }
    for (int g = 0; g < groups; ++g)
      if (edges == nullptr || !edges->has(g)) make(g, ranks);
  } catch (...) {
    abort();
    release();
    throw;
  }
}

/// The first member of each communicator has made its id. Rank 0 has made the id of the communicator of all
/// ranks.
void communicators::exchange_ids(const placement& where) {
  const std::string mine(reinterpret_cast<const char*>(ids_.data()), ids_.size() * sizeof(ncclUniqueId));
  const std::vector<std::string> all = where.exchange("ids of the communicators", mine);
  for (std::size_t g = 0; g < ids_.size(); ++g) {
    const int first = g < about_.communicators.size() ? about_.communicators[g].ranks[0] : 0;
    const std::string& of = all[static_cast<std::size_t>(first)];
    if (of.size() != mine.size())
      throw failure(70, "RC5122: rank {} has other communicators than rank {}", first, where.rank);
    std::memcpy(&ids_[g], of.data() + g * sizeof(ncclUniqueId), sizeof(ncclUniqueId));
  }
}

/// Creates the communicator of all processes.
void communicators::join_all(context& mine) {
  const std::string name = "the communicator of all ranks";
  group together(mine.of(), name);
  membership& world = join(mine, ids_.back(), about_.world(), mine.of().index, plain_config(), name);
  together.end();
  wait_for(mine, world.of, name);
  mine.of().world = world.of;
}

/// One rank's part in creating a communicator. Call it inside a group.
communicators::membership& communicators::join(context& owner, const ncclUniqueId& id, int members, int place,
                                               ncclConfig_t config, const std::string& name) {
  use_device_of(owner);
  all_.push_back(std::make_unique<membership>(membership{nullptr, &owner, place, nullptr, nullptr}));
  const ncclResult_t status = ncclCommInitRankConfig(&all_.back()->of, members, id, place, &config);
  if (status != ncclInProgress) check(owner.of(), status, nullptr, name + ": ncclCommInitRankConfig");
  return *all_.back();
}

void communicators::make(int group_index, const std::vector<std::unique_ptr<context>>& ranks) {
  const communicator& plan = about_.communicators[static_cast<std::size_t>(group_index)];
  const std::string name = "communicator " + std::string(plan.name);
  const auto member_at = [&](int place) {
    return ranks[static_cast<std::size_t>(plan.ranks[static_cast<std::size_t>(place)])].get();
  };
  const int size = static_cast<int>(plan.ranks.size());
  context* here = nullptr;
  for (int place = 0; place < size && here == nullptr; ++place) here = member_at(place);
  if (here == nullptr) return;
  members made;
  group together(here->of(), name);
  for (int place = 0; place < size; ++place)
    if (context* owner = member_at(place))
      made.push_back(&join(*owner, ids_[static_cast<std::size_t>(group_index)], size, place,
                           config_of(*owner, row_of(owner->of(), group_index)), name));
  together.end();
  for (const membership* m : made) {
    wait_for(*m->owner, m->of, name + ": ncclCommInitRankConfig");
    lane_link& k = link_of(m->owner->of(), group_index);
    k.nccl = m->of;
    k.place = m->place;
    k.scaled_sum = scaled_sum(m->owner->of(), m->of, name);
  }
  register_arenas(plan, made, name);
  connect_pair(made, group_index, name);
}

/// Registers arenas. If all members have one pipeline coordinate, their arenas have one layout and become a
/// symmetric window. Otherwise each rank registers its own arena. NCCL skips what the machine does not
/// support.
void communicators::register_arenas(const communicator& plan, const members& made, const std::string& name) {
  for (const membership* m : made)
    if (!m->owner->arena_is_registrable()) return;
  const auto pipeline_rank = [&](int rank) { return about_.ranks[static_cast<std::size_t>(rank)].pp; };
  const bool symmetric =
      plan.ranks.size() > 1 && std::all_of(plan.ranks.begin(), plan.ranks.end(), [&](int rank) {
        return pipeline_rank(rank) == pipeline_rank(plan.ranks[0]);
      });
  if (!symmetric) {
    for (membership* m : made)
      check(m->owner->of(),
            ncclCommRegister(m->of, m->owner->of().arena, window_bytes(m->owner->of().where->arena_bytes),
                             &m->registration),
            m->of, name + ": ncclCommRegister");
    return;
  }
  group together(made.front()->owner->of(), name);
  for (membership* m : made)
    together.add(
        *m->owner, m->of,
        ncclCommWindowRegister(m->of, m->owner->of().arena, window_bytes(m->owner->of().where->arena_bytes),
                               &m->window, NCCL_WIN_COLL_SYMMETRIC),
        "ncclCommWindowRegister");
  together.end();
  for (membership* m : made) wait_for(*m->owner, m->of, name + ": ncclCommWindowRegister");
}

/// NCCL connects a pair at its first message, and a rank would wait there for its peer. So the sender sends
/// one byte now, and no step has to connect.
void communicators::connect_pair(const members& made, int group_index, const std::string& name) {
  if (link_of(made.front()->owner->of(), group_index).over != over::peer) return;
  group together(made.front()->owner->of(), name);
  for (membership* m : made) {
    const lane& on = m->owner->of()[0];
    use_device_of(*m->owner);
    if (m->place == 0)
      together.add(*m->owner, m->of, ncclSend(on.workspace, 1, ncclUint8, 1, m->of, on.stream), "ncclSend");
    else
      together.add(*m->owner, m->of, ncclRecv(on.workspace, 1, ncclUint8, 0, m->of, on.stream), "ncclRecv");
  }
  together.end();
  for (membership* m : made) {
    wait_for(*m->owner, m->of, name + ": the first message");
    use_device_of(*m->owner);
    check(m->owner->of(), cudaStreamSynchronize(m->owner->of()[0].stream), "cudaStreamSynchronize");
  }
}

/// Aborts all communicators in one group, which sets the abort flags of all before it destroys one.
/// Destroying one waits for the GPU, whose kernels of the other communicators would still wait for their
/// peers.
void communicators::abort() {
  if (gone_ != nullptr) return;
  gone_ = std::make_shared<std::atomic<bool>>(false);
  std::vector<std::pair<ncclComm_t, int>> of;
  for (const auto& m : all_)
    if (m->of != nullptr) of.emplace_back(m->of, m->owner->device());
  std::thread([of, gone = gone_] {
    check_teardown(ncclGroupStart(), "ncclGroupStart");
    for (const auto& [communicator, device] : of) {
      check_teardown(cudaSetDevice(device), "cudaSetDevice");
      check_teardown(ncclCommAbort(communicator), "ncclCommAbort");
    }
    check_teardown(ncclGroupEnd(), "ncclGroupEnd");
    *gone = true;
  }).detach();
}

void communicators::release() {
  if (gone_ != nullptr) {
    const auto until = std::chrono::steady_clock::now() + 5s;
    while (!*gone_ && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
    if (!*gone_) teardown_failed("ncclCommAbort", "it was not done after 5 s");
    return;
  }
  for (const auto& m : all_) {
    if (m->window != nullptr)
      check_teardown(ncclCommWindowDeregister(m->of, m->window), "ncclCommWindowDeregister");
    if (m->registration != nullptr)
      check_teardown(ncclCommDeregister(m->of, m->registration), "ncclCommDeregister");
  }
  check_teardown(ncclGroupStart(), "ncclGroupStart");
  for (const auto& m : all_) {
    check_teardown(cudaSetDevice(m->owner->device()), "cudaSetDevice");
    check_teardown(ncclCommDestroy(m->of), "ncclCommDestroy");
  }
  check_teardown(ncclGroupEnd(), "ncclGroupEnd");
}

communicators::~communicators() { release(); }

}  // namespace rankc::runtime::cuda
