// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program: reports a machine with 32 cores to libraries that ask how many threads to start.
// With RANKC_TEST_NO_EXEC the program cannot be run again, as without /proc. With RANKC_TEST_NO_CHILD it has
// no child processes to wait for, as if another part of it had waited for them.
#include <dlfcn.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace {
constexpr int cores = 32;
}

extern "C" {

int sched_getaffinity(pid_t, std::size_t bytes, cpu_set_t* set) {
  std::memset(set, 0, bytes);
  for (int cpu = 0; cpu < cores; ++cpu) CPU_SET_S(cpu, bytes, set);
  return 0;
}

int get_nprocs() { return cores; }

int execv(const char* path, char* const* argv) {
  if (std::getenv("RANKC_TEST_NO_EXEC") == nullptr)
    return reinterpret_cast<int (*)(const char*, char* const*)>(::dlsym(RTLD_NEXT, "execv"))(path, argv);
  errno = ENOENT;
  return -1;
}

pid_t waitpid(pid_t child, int* status, int options) {
  if (std::getenv("RANKC_TEST_NO_CHILD") == nullptr)
    return reinterpret_cast<pid_t (*)(pid_t, int*, int)>(::dlsym(RTLD_NEXT, "waitpid"))(child, status,
                                                                                        options);
  errno = ECHILD;
  return -1;
}

long sysconf(int name) {
  if (name == _SC_NPROCESSORS_CONF || name == _SC_NPROCESSORS_ONLN) return cores;
  return reinterpret_cast<long (*)(int)>(::dlsym(RTLD_NEXT, "sysconf"))(name);
}
}
