// SPDX-License-Identifier: Apache-2.0
// Files that are not regular, names that lead to another folder, and file system errors: each gives a
// sentence, and no command blocks.
#include <rankc/trainer/mapped_file.hpp>
#include <rankc/trainer/model_files.hpp>

#include "../../exit_with.hpp"
#include "scratch.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstring>

namespace model_files_test {

using namespace rankc::runtime;
using rankc::test::exit_of, rankc::test::exit_with;
namespace fs = std::filesystem;

namespace {

exit_with read(const std::string& file, std::size_t most = 100) {
  return exit_of([&] { contents_of_file(file, 65, most); });
}

exit_with refused(const std::string& file, const char* why) { return {65, {6585, {file, why}}}; }

}  // namespace

TEST_CASE("a file is read whole, through links too, up to a number of bytes") {
  const scratch files;
  const std::string file = files.write("a", std::string("a\0b\n", 4)), link = files.path("link");
  fs::create_symlink("a", link);
  CHECK(contents_of_file(file, 65, 4) == std::string("a\0b\n", 4));
  CHECK(contents_of_file(link, 65, 4) == std::string("a\0b\n", 4));
  CHECK(contents_of_file(files.write("empty", ""), 65, 0).empty());
  CHECK(read(file, 3) == exit_with{65, {6586, {file, "4", "3"}}});
}

TEST_CASE("a FIFO, a folder, a device and a socket are refused by their kind, without a wait") {
  const scratch files;
  const std::string fifo = files.path("fifo"), folder = files.path("folder"), link = files.path("link");
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  fs::create_directory(folder);
  fs::create_symlink(fifo, link);
  CHECK(read(fifo) == refused(fifo, "it is a FIFO, not a regular file"));
  CHECK(read(link) == refused(link, "it is a FIFO, not a regular file"));
  CHECK(read(folder) == refused(folder, "it is a folder, not a regular file"));
  CHECK(read("/dev/zero") == refused("/dev/zero", "it is a device, not a regular file"));
  CHECK(exit_of([&] { mapped_file mapped(fifo); }) ==
        exit_with{1, {6101, {fifo, "it is a FIFO, not a regular file"}}});
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = files.path("socket");
  REQUIRE(name.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, name.c_str(), name.size() + 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  REQUIRE(bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  CHECK(read(name).message.id == 6585);
  close(socket);
}

TEST_CASE("what the file system refuses is a sentence with the file") {
  const scratch files;
  const std::string loop = files.path("loop"), longest = files.path(std::string(300, 'n'));
  fs::create_symlink("loop", loop);
  CHECK(read(files.path("none")) == refused(files.path("none"), "No such file or directory"));
  CHECK(read(loop) == refused(loop, "Too many levels of symbolic links"));
  CHECK(read(longest) == refused(longest, "File name too long"));
  CHECK(exit_of([&] { is_there(loop, 1); }) ==
        exit_with{1, {6585, {loop, "Too many levels of symbolic links"}}});
  CHECK(exit_of([&] { is_there(longest, 1); }) == exit_with{1, {6585, {longest, "File name too long"}}});
  CHECK_FALSE(is_there(files.path("none"), 1));
  CHECK_FALSE(is_there(files.write("file", "") + "/below", 1));
  CHECK(is_there(files.path("file"), 1));
  CHECK(exit_of([&] { entries_of(files.path("none"), 65); }) ==
        exit_with{65, {6587, {files.path("none"), "No such file or directory"}}});
}

TEST_CASE("a folder that may not be read or searched is a sentence") {
  const scratch files;
  const std::string closed = files.path("closed"), inside = files.write("closed/file", "x");
  fs::permissions(files.path(), fs::perms(0755));
  fs::permissions(closed, fs::perms(0));
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (getuid() == 0 && setuid(65534) != 0) _exit(2);  // root can read everywhere
    const exit_with list{65, {6587, {closed, "Permission denied"}}},
        look{65, {6585, {inside, "Permission denied"}}};
    if (exit_of([&] { entries_of(closed, 65); }) != list) _exit(3);
    if (exit_of([&] { is_there(inside, 65); }) != look) _exit(4);
    _exit(read(inside) == look ? 0 : 5);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  fs::permissions(closed, fs::perms(0700));
}

TEST_CASE("a file names another one of its folder, and none elsewhere") {
  const auto named = [](const std::string& name) {
    return exit_of([&] {
      const fs::path path = file_within("folder", name, "folder/index", 1);
      CHECK(path == fs::path("folder") / name);
    });
  };
  for (const char* plain : {"a.safetensors", "..a", "a b", "\xe9"}) CHECK(named(plain) == exit_with{});
  for (const char* elsewhere : {"", ".", "..", "../a", "/etc/passwd", "a/b", "a/"})
    CHECK(named(elsewhere) == exit_with{1, {6588, {"folder/index", elsewhere}}});
  CHECK(named(std::string("a\0b", 3)).message.id == 6588);
}

}  // namespace model_files_test
