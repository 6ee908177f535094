// SPDX-License-Identifier: Apache-2.0
#include <rankc/cost_model/calibrations.hpp>

#include <command_line.hpp>
#include <fmt/format.h>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>
#include <read_file.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <span>
#include <sstream>

#include "calibrate.hpp"
#include "speed_members.hpp"

namespace rankc::tool {

namespace {

using cost_model::gpu_speed;

/// "a, {b, c}" of members. Members with the same name up to a dot are one group in braces.
std::string braced(std::span<const speed_member> members, std::size_t begin, gpu_speed& g) {
  std::string out;
  for (std::size_t i = 0; i < members.size();) {
    if (i > 0) out += ", ";
    const std::size_t dot = members[i].name.find('.', begin);
    if (dot == std::string_view::npos) {
      const double value = members[i].of(g);
      out += fmt::format("{:.{}g}", value, members[i].digits);
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < members.size() && members[end].name.starts_with(members[i].name.substr(0, dot + 1))) ++end;
    out += "{" + braced(members.subspan(i, end - i), dot + 1, g) + "}";
    i = end;
  }
  return out;
}

void print(std::ostream& out, gpu_speed g) {
  fmt::print(out, "inline constexpr gpu_speed {0}{{\n    .name = \"{0}\",\n    .processors = {1},\n", g.name,
             g.processors);
  const std::span<const speed_member> all(speed_members);
  for (std::size_t i = 0; i < all.size();) {
    const std::string_view name = all[i].name.substr(0, all[i].name.find('.'));
    std::size_t end = i + 1;
    while (end < all.size() && all[end].name.substr(0, all[end].name.find('.')) == name) ++end;
    fmt::print(out, "    .{} = {},\n", name, braced(all.subspan(i, end - i), 0, g));
    i = end;
  }
  fmt::print(out, "}};\n");
}

struct distance {
  int rows = 0;
  double sum = 0, most = 0;
};

/// Prints how far the constants are from the rows of each kernel.
void print_distances(std::ostream& out, const gpu_speed& g, const timed_gpu& t) {
  std::map<std::string, distance> of;
  for (const timed_kernel& k : t.kernels) {
    const double takes = predicted(g, k);
    if (takes == 0) continue;
    distance& d = of[k.name];
    const double off = std::abs(takes / k.seconds - 1);
    ++d.rows;
    d.sum += off;
    d.most = std::max(d.most, off);
  }
  for (const auto& [name, d] : of)
    fmt::print(out, "{:20} {:3} rows, off by {:4.1f} % on average and {:4.1f} % at most\n", name, d.rows,
               100 * d.sum / d.rows, 100 * d.most);
}

}  // namespace

timed_gpu read_timed(std::istream& lines, const std::string& file) {
  timed_gpu t;
  int number = 0;
  for (std::string line; std::getline(lines, line);) try {
      ++number;
      const auto j = nlohmann::json::parse(line);
      if (j.contains("gpu")) {
        t.processors = j.at("processors");
      } else if (j.contains("load")) {
        t.loads.push_back({j.at("load"), j.at("operations"), j.at("bytes"), j.at("loaded_seconds"),
                           j.at("watts"), j.at("dim")});
      } else {
        timed_kernel k{.name = j.at("kernel"), .bytes = j.value("bytes", 0.0), .seconds = j.at("seconds")};
        k.tokens = j.value("tokens", 0);
        k.in = j.value("in", 0);
        k.out = j.value("out", 0);
        k.rows = j.value("rows", 0);
        k.seq = j.value("seq", 0);
        k.heads = j.value("heads", 0);
        k.dim = j.value("dim", 0);
        t.kernels.push_back(std::move(k));
      }
    } catch (const nlohmann::json::exception&) {
      throw runtime::failure(1, "RC8000: line {} of {} is not one that rankc-calibrate writes: {}", number,
                             file, runtime::printable(line));
    }
  if (t.processors == 0)
    throw runtime::failure(1, "RC8001: no line of {} names the GPU; rankc-calibrate writes it first", file);
  return t;
}

int calibrate(const std::string& file, std::ostream& out, std::ostream& errors) try {
  std::istringstream in(codegen::read_file(file));
  const timed_gpu t = read_timed(in, file);
  const std::string name = std::filesystem::path(file).stem();
  const gpu_speed* const known = cost_model::find_speed(name);
  // Links and stated values are those of the known GPU.
  gpu_speed g = fit(t, known ? *known : cost_model::h200);
  g.name = name;
  print(out, g);
  print_distances(errors, g, t);
  return 0;
} catch (const std::exception& e) {
  errors << "error: " << codegen::sentence_of(e) << "\n";
  return codegen::exit_code_of(e);
}

}  // namespace rankc::tool
