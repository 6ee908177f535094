// SPDX-License-Identifier: Apache-2.0
#include "batches.hpp"

#include "isolate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace fuzz {

namespace {

constexpr std::size_t batch_size = 24;

struct batch_file {
  std::string path;  // without its extension
  std::vector<std::string> names;
};

void write_source(const compiler& c, const batch_file& b) {
  std::ofstream out(b.path + ".cpp");
  std::string table;
  for (const std::string& name : b.names) {
    out << fmt::format("#include \"{}/program.cpp\"\n", name);
    table += "    " + fmt::format(fmt::runtime(c.entry), name) + ",\n";
  }
  out << fmt::format("#include \"{}\"\nextern \"C\" const {} programs[]{{\n{}    {{}}}};\n", c.header, c.type,
                     table);
}

int compile_file(const compiler& c, const batch_file& b) {
  // The larger heap saves g++'s garbage collection, which takes a tenth of the time.
  return std::system(
      fmt::format("{} -std=c++20 -O0 --param=ggc-min-heapsize=1000000 -fPIC -shared {} '{}.cpp' -o '{}.so'",
                  c.command, c.includes, b.path, b.path)
          .c_str());
}

std::string first_error(const std::string& printed) {
  const std::size_t at = printed.find("error");
  if (at == printed.npos) return printed.substr(0, 300);
  const std::size_t line = printed.rfind('\n', at);
  return printed.substr(line == printed.npos ? 0 : line + 1, 300);
}

/// Compile each batch; if a batch fails, compile its programs one by one.
void compile_batches(const compiler& c, std::vector<batch_file> batches, int at_once, compiled& out) {
  std::vector<task> tasks;
  for (const batch_file& b : batches) {
    write_source(c, b);
    tasks.push_back([&c, &b](const teller& t) {
      if (compile_file(c, b) != 0) t.line("failed");
    });
  }
  const std::vector<outcome> done = run_isolated(tasks, at_once, 600);
  std::vector<batch_file> singles;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const batch_file& b = batches[i];
    const bool failed = !done[i].lines.empty() || !done[i].died.empty();
    if (failed && b.names.size() == 1) out.wrong[b.names[0]] = first_error(done[i].printed);
    for (const std::string& name : b.names)
      if (!failed) out.object_of[name] = b.path + ".so";
      else if (b.names.size() > 1) singles.push_back({b.path + "_" + name, {name}});
  }
  if (!singles.empty()) compile_batches(c, std::move(singles), at_once, out);
}

}  // namespace

compiled compile_programs(const compiler& c, const std::string& folder, const std::vector<std::string>& names,
                          int at_once) {
  std::vector<batch_file> batches;
  for (std::size_t i = 0; i < names.size(); i += batch_size)
    batches.push_back(
        {fmt::format("{}/batch_{}", folder, names[i]),
         {names.begin() + static_cast<std::ptrdiff_t>(i),
          names.begin() + static_cast<std::ptrdiff_t>(std::min(i + batch_size, names.size()))}});
  compiled out;
  compile_batches(c, std::move(batches), at_once, out);
  return out;
}

}  // namespace fuzz
