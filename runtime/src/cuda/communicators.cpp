// SPDX-License-Identifier: Apache-2.0
// Making, destroying and aborting the communicators.
#include "communicators.hpp"

#include "arena.hpp"
#include "check.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace rankc::cuda {
namespace {

using namespace std::chrono_literals;

/// Give the rank its communicator under every role that names it. A pipeline edge has two members: note the
/// other.
void assign(rank& r, int group_index, ncclComm_t made, int place) {
  for (int role = 0; role < n_roles; ++role)
    if (r.row->communicator[role] == group_index) {
      r.communicators[role] = made;
      r.peers[role] = 1 - place;
    }
}

bool plays(const rank& r, int group_index, role one, role other) {
  return r.row->communicator[static_cast<int>(one)] == group_index ||
         r.row->communicator[static_cast<int>(other)] == group_index;
}
bool sends_on(const rank& r, int group_index) { return plays(r, group_index, role::to_next, role::to_prev); }
bool receives_on(const rank& r, int group_index) {
  return plays(r, group_index, role::from_prev, role::from_next);
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

void use_device_of(context& c) { check(c.of(), cudaSetDevice(c.device()), "cudaSetDevice"); }

void wait_for(context& c, ncclComm_t of, const std::string& call) { check(c.of(), ncclInProgress, of, call); }

}  // namespace

communicators::communicators(const description& about, const std::vector<std::unique_ptr<context>>& ranks,
                             const peer_edges* edges)
    : about_(about) {
  prepare_nccl();
  try {
    for (int g = 0; g < static_cast<int>(about_.communicators.size()); ++g)
      if (edges == nullptr || !edges->has(g)) make(g, ranks);
  } catch (...) {
    abort();
    release();
    throw;
  }
}

void communicators::make(int group_index, const std::vector<std::unique_ptr<context>>& ranks) {
  const communicator& plan = about_.communicators[static_cast<std::size_t>(group_index)];
  const std::string name = "communicator " + std::string(plan.name);
  members made;
  ncclUniqueId id;
  context& first = *ranks[static_cast<std::size_t>(plan.ranks[0])];
  check(first.of(), ncclGetUniqueId(&id), nullptr, name + ": ncclGetUniqueId");
  group together(first.of(), name);
  for (std::size_t place = 0; place < plan.ranks.size(); ++place) {
    context& owner = *ranks[static_cast<std::size_t>(plan.ranks[place])];
    use_device_of(owner);
    all_.push_back(std::make_unique<membership>(membership{nullptr, &owner, static_cast<int>(place), nullptr, nullptr}));
    made.push_back(all_.back().get());
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    config.maxCTAs = most_blocks;
    together.add(owner, nullptr,
                 ncclCommInitRankConfig(&made.back()->of, static_cast<int>(plan.ranks.size()), id,
                                        static_cast<int>(place), &config),
                 "ncclCommInitRankConfig");
  }
  together.end();
  for (const membership* m : made) {
    wait_for(*m->owner, m->of, name + ": ncclCommInitRankConfig");
    assign(m->owner->of(), group_index, m->of, m->place);
  }
  register_arenas(made, name);
  connect_pair(made, group_index, name);
}

/// Where all members lie on one pipeline coordinate their arenas have one layout: they become a symmetric
/// window. Elsewhere each rank registers its own. NCCL leaves out what the machine cannot do.
void communicators::register_arenas(const members& made, const std::string& name) {
  if (std::any_of(made.begin(), made.end(), [](const membership* m) { return !m->owner->arena_is_registrable(); }))
    return;
  const layout* where = made.front()->owner->of().where;
  const bool symmetric =
      made.size() > 1 && std::all_of(made.begin(), made.end(),
                                     [&](const membership* m) { return m->owner->of().where == where; });
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
    together.add(*m->owner, m->of,
                 ncclCommWindowRegister(m->of, m->owner->of().arena, window_bytes(where->arena_bytes),
                                        &m->window, NCCL_WIN_COLL_SYMMETRIC),
                 "ncclCommWindowRegister");
  together.end();
  for (membership* m : made) wait_for(*m->owner, m->of, name + ": ncclCommWindowRegister");
}

/// Pairs connect at their first message, which would hold up a rank until its peer comes. One byte from the
/// sending side to the other, here, and no step has to.
void communicators::connect_pair(const members& made, int group_index, const std::string& name) {
  group together(made.front()->owner->of(), name);
  members connected;
  for (membership* m : made) {
    rank& r = m->owner->of();
    const bool sends = sends_on(r, group_index);
    if (!sends && !receives_on(r, group_index)) continue;
    connected.push_back(m);
    use_device_of(*m->owner);
    const int other = 1 - m->place;
    const cudaStream_t on = r.on(stream::compute);
    if (sends) together.add(*m->owner, m->of, ncclSend(r.workspace, 1, ncclUint8, other, m->of, on), "ncclSend");
    else together.add(*m->owner, m->of, ncclRecv(r.workspace, 1, ncclUint8, other, m->of, on), "ncclRecv");
  }
  together.end();
  for (membership* m : connected) {
    wait_for(*m->owner, m->of, name + ": the first message");
    use_device_of(*m->owner);
    check(m->owner->of(), cudaStreamSynchronize(m->owner->of().on(stream::compute)), "cudaStreamSynchronize");
  }
}

/// In one group, which raises the flags of all communicators before it takes any apart: that waits for the
/// GPU, where kernels of the others would else go on waiting for their peers.
void communicators::abort() {
  if (gone_ != nullptr) return;
  gone_ = std::make_shared<std::atomic<bool>>(false);
  std::vector<std::pair<ncclComm_t, int>> of;
  for (const auto& m : all_)
    if (m->of != nullptr) of.emplace_back(m->of, m->owner->device());
  std::thread([of, gone = gone_] {
    ncclGroupStart();
    for (const auto& [communicator, device] : of) {
      cudaSetDevice(device);
      ncclCommAbort(communicator);
    }
    ncclGroupEnd();
    *gone = true;
  }).detach();
}

void communicators::release() {
  if (gone_ != nullptr) {
    const auto until = std::chrono::steady_clock::now() + 5s;
    while (!*gone_ && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
    return;
  }
  for (const auto& m : all_) {
    if (m->window != nullptr) ncclCommWindowDeregister(m->of, m->window);
    if (m->registration != nullptr) ncclCommDeregister(m->of, m->registration);
  }
  ncclGroupStart();
  for (const auto& m : all_) {
    cudaSetDevice(m->owner->device());
    ncclCommDestroy(m->of);
  }
  ncclGroupEnd();
}

communicators::~communicators() { release(); }

}  // namespace rankc::cuda
