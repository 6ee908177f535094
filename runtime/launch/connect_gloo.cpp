// SPDX-License-Identifier: Apache-2.0
// Transfers data between processes through Gloo's TCP transport: one connection per pair, and a thread that
// serves all of them.
#include "connect.hpp"

#include <rankc/launch/frame.hpp>
#include <rankc/launch/limits.hpp>
#include <rankc/runtime/failure.hpp>

#include <gloo/common/error.h>
#include <gloo/common/logging.h>
#include <gloo/transport/tcp/device.h>
#include <sched.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <vector>

namespace rankc::runtime {
namespace {

using clock = std::chrono::steady_clock;
using gloo::transport::UnboundBuffer;

[[noreturn]] void refuse_address(const std::string& address, const char* why) {
  throw failure(75,
                "RC6327: data connections cannot be opened at {}, the address by which rank 0 knows this "
                "machine; ranks must reach each other without address translation: {}",
                address, why);
}

/// Open a socket for data connections, and start a Gloo thread, which inherits this thread's scheduling.
/// While the thread does not get its connections' locks, it polls for them; it must not take the processor
/// from a thread that holds one.
/// Errors: failure (75) if the address is none of this machine, or cannot be used.
std::shared_ptr<gloo::transport::Device> make_device(const std::string& address) try {
  const sched_param none{};
  sched_setscheduler(0, SCHED_BATCH, &none);
  auto made = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(address.c_str()));
  sched_setscheduler(0, SCHED_OTHER, &none);
  return made;
} catch (const gloo::EnforceNotMet& e) {
  refuse_address(address, e.what());
} catch (const gloo::Exception& e) {
  refuse_address(address, e.what());
}

class gloo_transport final : public transport {
 public:
  gloo_transport(const exchange_function& gather, const data_end& end) : end_(end) {
    device_ = make_device(end.address);
    context_ = device_->createContext(end.rank, end.world);
    context_->setTimeout(end.patience);
    body_writer mine;  // by rank: where this process listens for that rank
    for (int rank = 0; rank < end.world; ++rank) {
      if (rank == end.rank) {
        mine.add("");
        continue;
      }
      const std::vector<char> bytes = context_->createPair(rank)->address().bytes();
      mine.add(std::string_view(bytes.data(), bytes.size()));
    }
    const std::vector<std::string> all = gather("addresses of data connections", mine.take());
    for (int rank = 0; rank < end.world; ++rank)
      if (rank != end.rank) connect_with(rank, all[static_cast<std::size_t>(rank)]);
  }

  void move(std::uint64_t slot, std::span<const outgoing> sent, std::span<const incoming> expected) override {
    const auto until = clock::now() + end_.patience;
    under_way all(*this);
    try {
      for (const outgoing& o : sent)
        if (o.bytes > 0) all.add(const_cast<std::byte*>(o.from), o.bytes, o.to, false).send(o.to, slot);
      for (const incoming& i : expected)
        if (i.bytes > 0) all.add(i.to, i.bytes, i.from, true).recv(i.from, slot);
    } catch (const gloo::Exception& e) {
      throw failure(77, "RC5304: data could not be sent to other processes: {}", e.what());
    }
    for (const under_way::piece& p : all.pieces()) finish(p, until);
  }

  void stop() override {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    for (UnboundBuffer* b : active_) abort(*b);
  }

 private:
  /// The buffers of one call, known to `stop` as long as it lasts.
  class under_way {
   public:
    struct piece {
      std::unique_ptr<UnboundBuffer> buffer;
      int rank;
      bool arrives;
    };
    explicit under_way(gloo_transport& of) : of_(of) {}
    ~under_way() {
      const std::lock_guard lock(of_.mutex_);
      for (const piece& p : pieces_) std::erase(of_.active_, p.buffer.get());
    }
    UnboundBuffer& add(std::byte* data, std::size_t bytes, int rank, bool arrives) {
      pieces_.push_back({of_.context_->createUnboundBuffer(data, bytes), rank, arrives});
      UnboundBuffer& made = *pieces_.back().buffer;
      const std::lock_guard lock(of_.mutex_);
      of_.active_.push_back(&made);
      if (of_.stopped_) abort(made);
      return made;
    }
    const std::deque<piece>& pieces() const { return pieces_; }

   private:
    gloo_transport& of_;
    std::deque<piece> pieces_;
  };

  static void abort(UnboundBuffer& b) {
    b.abortWaitRecv();
    b.abortWaitSend();
  }

  void connect_with(int rank, const std::string& addresses) try {
    body_reader theirs(addresses);
    for (int before = 0; before < end_.rank; ++before) theirs.text();
    const std::string here = theirs.text();
    context_->getPair(rank)->connect({here.begin(), here.end()});
  } catch (const gloo::Exception& e) {
    throw failure(77, "RC5305: rank {} cannot connect with rank {} for data: {}", end_.rank, rank, e.what());
  }

  void finish(const under_way::piece& p, clock::time_point until) try {
    const auto left = std::max(std::chrono::duration_cast<std::chrono::milliseconds>(until - clock::now()),
                               std::chrono::milliseconds(1));
    if (p.arrives ? p.buffer->waitRecv(left) : p.buffer->waitSend(left)) return;
    throw failure(77, "RC5306: stopped, because another rank has failed");
  } catch (const gloo::Exception& e) {
    if (clock::now() < until) throw failure(77, "RC5307: rank {} no longer answers: {}", p.rank, e.what());
    const long waited = whole_seconds(end_.patience);
    if (p.arrives) throw failure(77, "RC5308: rank {} did not send its data within {} s", p.rank, waited);
    throw failure(77, "RC5309: rank {} did not receive the data sent to it within {} s", p.rank, waited);
  }

  const data_end end_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::transport::Context> context_;
  std::mutex mutex_;
  std::vector<UnboundBuffer*> active_;
  bool stopped_ = false;
};

}  // namespace

std::unique_ptr<transport> connect_all(const exchange_function& gather, const data_end& end) {
  return std::make_unique<gloo_transport>(gather, end);
}

}  // namespace rankc::runtime
