// SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include "search.hpp"

namespace rankc::tool {

namespace {

namespace tp = cost_model::transformer_perf;

constexpr int largest_size = 1 << 24, largest_domain = 1 << 12;

struct named_model {
  std::string_view name;
  tp::transformer sizes;
};
constexpr named_model models[]{{"gpt3", tp::gpt3}, {"gpt3_1T", tp::gpt3_1T}, {"vit_era5", tp::vit_era5}};

/// A whole number from 1 to `most`.
std::optional<int> size(const fields& f, const char* name, int most, report& out) {
  const std::optional<int> n = f.count(name);
  if (!n || *n <= most) return n;
  refuse(out, 300) << name << " is " << *n << "; it must be at most " << most;
  return {};
}

tp::transformer read_sizes(const fields& f, report& out) {
  static constexpr std::string_view legal[]{"l", "e", "f", "h", "depth"};
  f.only("model", legal);
  const auto needed = [&](const char* name) {
    return f.need(name, size(f, name, largest_size, out)).value_or(1);
  };
  tp::transformer m{.l = needed("l"), .e = needed("e"), .h = needed("h"), .depth = needed("depth")};
  m.f = size(f, "f", largest_size, out).value_or(m.f);
  if (m.h > m.e)
    refuse(out, 300) << "model has h=" << m.h << " heads of e=" << m.e << " elements; e must be at least h";
  return m;
}

}  // namespace

search_request read_search(const json& line, report& out) {
  static constexpr std::string_view legal[]{"cost_model", "model",    "strategy",          "system",
                                            "nvs",        "n_gpus",   "global_batch_size", "capacity_gb",
                                            "top",        "corrected"};
  const fields f(line, out);
  f.only("the line", legal);
  f.one_of("cost_model", cost_models);
  search_request r;
  tp::problem& q = r.of;
  if (const auto given = line.find("model"); given != line.end() && given->is_object()) {
    q.on.model = read_sizes({*given, out}, out);
  } else if (const auto i = f.need("model", f.one_of("model", names_of(models)))) {
    q.on.model = models[*i].sizes;
    r.model = models[*i].name;
  }
  if (const auto i = f.need("strategy", f.one_of("strategy", strategies)))
    q.by = static_cast<tp::strategy>(*i);
  if (const auto i = f.need("system", f.one_of("system", names_of(tp::gpu_systems))))
    q.on.gpu = tp::gpu_systems[*i];
  q.on.gpu.nvlink_size = size(f, "nvs", largest_domain, out).value_or(q.on.gpu.nvlink_size);
  q.on.gpu.hbm_capacity = f.number("capacity_gb").value_or(q.on.gpu.hbm_capacity);
  q.gpus = f.need("n_gpus", size(f, "n_gpus", largest_size, out)).value_or(1);
  q.global_batch = f.need("global_batch_size", size(f, "global_batch_size", largest_size, out)).value_or(1);
  if (f.flag("corrected").value_or(false)) q.on.fix = tp::corrected;
  r.top = f.count("top").value_or(r.top);
  return r;
}

}  // namespace rankc::tool
