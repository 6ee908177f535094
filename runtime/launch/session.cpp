// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/session.hpp>

#include <rankc/launch/refusal.hpp>
#include <rankc/launch/error_file.hpp>
#include <rankc/launch/say_error.hpp>

#include <unistd.h>

namespace rankc::runtime {
namespace {

std::string victims_line(int rank, const root_cause& cause) {
  return fmt::format("rank {}: stopped, because {}", rank, cause.text);
}

}  // namespace

std::optional<launched> launched_place(const description& about, const environment& get) {
  return read_environment(get, [&](const char* name, int world) {
    if (world != about.world())
      throw refusal(2, "{} is {}: the plan has {} ranks (pp {}, dp {}{}, tp {}); start as many processes",
                    name, world, about.world(), about.pp, about.dp,
                    about.cp > 1 ? fmt::format(", cp {}", about.cp) : "", about.tp);
  });
}

session::session(const description& about, const launched& place, const environment& get)
    : about_(about), get_(get), rank_(place.rank) {
  const limits times = read_limits(get);
  const auto say = [name = std::string(about.name)](const std::string& line) {
    say_error("{}: {}\n", name, line);
  };
  const auto ends = place.board >= 0 ? std::make_shared<board>(place.world, place.board) : nullptr;
  if (rank_ == 0) {
    if (!place.warning.empty()) say("note: " + place.warning);
    coordinator_ = std::make_unique<coordinator>(
        place.listens_on >= 0 ? adopt_listener(place.listens_on) : listen_at(place.host, place.port),
        place.world, place.job, times, [say](const std::string& line) { say("note: " + line); }, ends);
  }
  member_ = std::make_shared<member>(
      hello_of(about, place.rank, place.world),
      member::settings{.host = rank_ == 0 && !is_loopback(place.host) ? "localhost" : place.host,
                       .port = place.port,
                       .job = place.job,
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
                           }});
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
