// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/session.hpp>

#include <rankc/launch/error_file.hpp>
#include <rankc/launch/file_limit.hpp>
#include <rankc/launch/listen.hpp>
#include <rankc/launch/say_error.hpp>
#include <rankc/runtime/failure.hpp>

#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace rankc::runtime {
namespace {

using clock = std::chrono::steady_clock;

/// Writes a line to standard error, after the program's name.
struct line_writer {
  std::string program;
  void operator()(const std::string& line) const { say_error("{}: {}\n", program, line); }
};

/// A function that writes once, after three seconds, that this rank waits for rank 0, and why.
on_failed_try note_of_waiting(const launched& place, const limits& times, const line_writer& write) {
  const deadline from = clock::now() + limits::before_a_note;
  return [=, has_written = false](const std::string& why) mutable {
    if (has_written || clock::now() < from) return;
    has_written = true;
    write("note: " + say("RC5369: rank {} waits for rank 0 at {} port {} ({}); it waits for {} s in all "
                         "(RANKC_JOIN_TIMEOUT)",
                         place.rank, place.host, place.port, why, whole_seconds(times.join)));
  };
}

std::string note_of_secret(const launched& place) {
  if (place.is_job_named)
    return say(
        "RC5370: RANKC_SECRET is not set, so only the name of the job ({}) identifies its ranks; anybody who "
        "knows the name and reaches port {} can stop the job: set RANKC_SECRET to 32 random hexadecimal "
        "digits, the same on all ranks",
        place.job, place.port);
  return say(
      "RC5371: neither RANKC_SECRET nor RANKC_JOB is set, and {} gives this job no name, so ranks of another "
      "job at port {} may be taken for ranks of this one: set RANKC_SECRET to 32 random hexadecimal digits, "
      "the same on all ranks",
      place.family, place.port);
}

/// Open the sockets at which rank 0 waits for the others. Notes say what is less secure than it could be.
std::vector<socket_handle> listen(const launched& place, const limits& times, const line_writer& write) {
  if (!place.warning.empty()) write("note: " + place.warning);
  if (place.secret.empty()) write("note: " + note_of_secret(place));
  if (place.listens_on >= 0) {
    std::vector<socket_handle> one;
    one.push_back(adopt_listener(place.listens_on));
    return one;
  }
  listening found = listen_at(place.host, place.port, !place.is_on_one_machine(), clock::now() + times.join,
                              note_of_waiting(place, times, write));
  if (found.everywhere)
    write("note: " +
          say("RC5368: rank 0 listens at port {} of all addresses of this machine, because {} is an address "
              "of the loopback interface here, which other machines cannot reach; set MASTER_ADDR to the "
              "address of one interface",
              place.port, place.host));
  return std::move(found.sockets);
}

std::string victims_line(int rank, const root_cause& cause) {
  return fmt::format("rank {}: {}", rank, stopped_by(cause).what());
}

}  // namespace

std::optional<launched> launched_place(const description& about, const environment& get) {
  return read_environment(get, [&](const char* name, int world) {
    if (world != about.world())
      throw failure(
          2,
          "RC5334: {} is {}, but the plan has {} ranks (pp {}, dp {}, cp {}, tp {}); start as many processes",
          name, world, about.world(), about.pp, about.dp, about.cp, about.tp);
  });
}

session::session(const description& about, const launched& place, const environment& get)
    : about_(about), get_(get), rank_(place.rank) {
  const limits times = read_limits(get);
  const mac_key job = key_of_job(place.secret, place.job);
  const auto ends = place.board >= 0 ? std::make_shared<board>(place.world, place.board) : nullptr;
  const line_writer say{about.name};
  raise_file_limit(rank_ == 0 ? place.world : 0);
  if (rank_ == 0)
    coordinator_ = std::make_unique<coordinator>(
        listen(place, times, say), place.world, job, times,
        [say](const std::string& line) { say("note: " + line); }, ends);
  member_ = std::make_shared<member>(
      hello_of(about, place.rank, place.world),
      member::settings{.host = coordinator_ != nullptr ? coordinator_->address() : place.host,
                       .port = place.port,
                       .job = job,
                       .times = times,
                       .listing = [&about] { return listing_of(about); },
                       .ends = ends,
                       .too_late =
                           [say, get, rank = rank_](const root_cause& cause) {
                             const bool is_victim = cause.rank != rank;
                             const std::string line = is_victim ? victims_line(rank, cause) : cause.text;
                             say(line);
                             write_error_file(get, line, is_victim);
                             _exit(is_victim ? 77 : 70);
                           },
                       .waits = note_of_waiting(place, times, say)});
  where_.rank = place.rank;
  where_.device = place.local_rank;
  where_.local_size = place.local_size;
  where_.exchange = [m = member_.get()](const std::string& name, const std::string& mine) {
    return m->gather(name, mine);
  };
  where_.agreed_stop = [m = member_.get()](std::int64_t step, int signal) {
    return m->agreed_stop(step, signal);
  };
  where_.others = member_;
}

int session::end(const failure& f) {
  const root_cause cause = member_->report(f.code, f.what());
  const bool is_root = cause.rank == rank_, is_said = !is_root && cause.text == f.what(),
             is_victim = is_said || (!is_root && f.code == 77);
  const std::string line = is_victim && !is_said ? victims_line(rank_, cause) : f.what();
  if (!is_said) say_error("{}: {}\n", about_.name, line);
  write_error_file(get_, line, is_victim);
  if (is_victim) return 77;
  return is_root && f.code == 77 ? 70 : f.code;
}

}  // namespace rankc::runtime
