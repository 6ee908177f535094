// SPDX-License-Identifier: Apache-2.0
#include "bounded_run.hpp"

#include "../runtime/trainer/scratch.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <thread>

namespace rankc::test {
namespace {

using clock = std::chrono::steady_clock;

[[noreturn]] void become(std::vector<std::string> words, const std::string& folder, const std::string& out,
                         const std::string& err) {
  setpgid(0, 0);
  const int write = O_WRONLY | O_CREAT | O_TRUNC;
  const bool is_open = dup2(open("/dev/null", O_RDONLY), STDIN_FILENO) >= 0 &&
                       dup2(open(out.c_str(), write, 0666), STDOUT_FILENO) >= 0 &&
                       dup2(open(err.c_str(), write, 0666), STDERR_FILENO) >= 0 && chdir(folder.c_str()) == 0;
  if (!is_open) _exit(126);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  _exit(127);
}

}  // namespace

bounded_run run_bounded(const std::vector<std::string>& words, const std::string& folder,
                        std::chrono::duration<double> told_after, std::chrono::duration<double> limit) {
  const runtime::scratch files;
  const std::string out = files.path("out"), err = files.path("err");
  const pid_t child = fork();
  if (child == 0) become(words, folder, out, err);
  const clock::time_point begin = clock::now();
  bounded_run r;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    const std::chrono::duration<double> passed = clock::now() - begin;
    if (passed > limit) {
      r.hung = true;
      kill(-child, SIGKILL);
    } else if (passed > told_after && !r.was_told) {
      r.was_told = true;
      kill(child, SIGTERM);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  r.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  r.out = runtime::contents(out);
  r.err = runtime::contents(err);
  return r;
}

}  // namespace rankc::test
