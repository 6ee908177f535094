// SPDX-License-Identifier: Apache-2.0
#include <rankc/cost_model/calibrations.hpp>

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>

#include "calibrate.hpp"

namespace rankc::tool {

namespace {

using cost_model::gpu_speed;

void print(std::ostream& out, const gpu_speed& g) {
  const auto attention = [](const cost_model::attention_speed& s) {
    return fmt::format("{{{:.3g}, {:.4g}, {:.4g}, {:.3g}}}", s.start, s.per_second, s.half_at, s.joules);
  };
  const auto rate = [](const cost_model::rate& r) { return fmt::format("{{{:.3g}, {:.4g}}}", r.start, r.per_second); };
  const auto link = [](const cost_model::link& l) { return fmt::format("{{{:.3g}, {:.4g}, {:.4g}}}", l.latency, l.bandwidth, l.message_bandwidth); };
  fmt::print(out, "inline constexpr gpu_speed {}{{\n", g.name);
  const auto line = [&](std::string_view name, const std::string& value) { fmt::print(out, "    .{} = {},\n", name, value); };
  const auto number = [&](std::string_view name, double value) { line(name, fmt::format("{:.4g}", value)); };
  line("name", fmt::format("\"{}\"", g.name));
  line("processors", fmt::format("{}", g.processors));
  number("peak", g.peak), number("products", g.products), number("product_start", g.product_start), number("tile_start", g.tile_start);
  number("narrow_tile", g.narrow_tile), number("stores_beside", g.stores_beside), number("split_sums", g.split_sums);
  number("with_bias", g.with_bias), number("two_results", g.two_results);
  line("forward", fmt::format("{{{}, {}}}", attention(g.forward[0]), attention(g.forward[1])));
  line("backward", fmt::format("{{{}, {}}}", attention(g.backward[0]), attention(g.backward[1])));
  line("passes", rate(g.passes)), line("column_sums", rate(g.column_sums)), line("sweeps", rate(g.sweeps));
  number("step_start", g.step_start), number("beside", g.beside), number("joules_of_product", g.joules_of_product);
  number("in_steps", g.in_steps), number("joules_of_byte", g.joules_of_byte), number("link_power", g.link_power);
  number("power", g.power), number("rest", g.rest);
  line("node", link(g.node)), line("network", link(g.network));
  fmt::print(out, "}};\n");
}

struct distance {
  int rows = 0;
  double sum = 0, most = 0;
};

/// How far the constants are from the rows of each kernel.
void print_distances(std::ostream& out, const gpu_speed& g, const timed_gpu& t) {
  std::map<std::string, distance> of;
  for (const timed_kernel& k : t.kernels) {
    const double takes = predicted(g, k);
    if (takes == 0) continue;
    distance& d = of[k.name];
    const double off = std::abs(takes / k.seconds - 1);
    ++d.rows, d.sum += off, d.most = std::max(d.most, off);
  }
  for (const auto& [name, d] : of) fmt::print(out, "{:20} {:3} rows, off by {:4.1f} % on average and {:4.1f} % at most\n", name, d.rows, 100 * d.sum / d.rows, 100 * d.most);
}

}  // namespace

timed_gpu read_timed(std::istream& lines) {
  timed_gpu t;
  int number = 0;
  for (std::string line; std::getline(lines, line);) try {
      ++number;
      const auto j = nlohmann::json::parse(line);
      if (j.contains("gpu")) {
        t.processors = j.at("processors");
      } else if (j.contains("load")) {
        t.loads.push_back({j.at("load"), j.at("operations"), j.at("bytes"), j.at("loaded_seconds"), j.at("watts"), j.at("dim")});
      } else {
        timed_kernel k{.name = j.at("kernel"), .bytes = j.value("bytes", 0.0), .seconds = j.at("seconds")};
        k.tokens = j.value("tokens", 0), k.in = j.value("in", 0), k.out = j.value("out", 0);
        k.rows = j.value("rows", 0), k.seq = j.value("seq", 0), k.heads = j.value("heads", 0), k.dim = j.value("dim", 0);
        t.kernels.push_back(std::move(k));
      }
    } catch (const nlohmann::json::exception&) {
      throw std::runtime_error(fmt::format("line {} is none that rankc-calibrate writes: {}", number, line));
    }
  if (t.processors == 0) throw std::runtime_error("no line names the GPU; rankc-calibrate begins with it");
  return t;
}

int calibrate(const std::string& file, std::ostream& out, std::ostream& errors) try {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot be read");
  const timed_gpu t = read_timed(in);
  gpu_speed g = fit(t, cost_model::h200);
  const std::string name = std::filesystem::path(file).stem();
  g.name = name;
  print(out, g);
  print_distances(errors, g, t);
  return 0;
} catch (const std::exception& e) {
  errors << "error: " << file << ": " << e.what() << "\n";
  return 1;
}

}  // namespace rankc::tool
