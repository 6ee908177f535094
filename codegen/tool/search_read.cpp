// SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include "search.hpp"

namespace rankc::tool {

namespace {

constexpr int largest_size = 1 << 24, largest_domain = 1 << 12;

struct named_model {
  std::string_view name;
  published_model::transformer sizes;
};
constexpr named_model models[]{{"gpt3", published_model::gpt3},
                               {"gpt3_1T", published_model::gpt3_1T},
                               {"vit_era5", published_model::vit_era5}};

published_model::transformer read_sizes(const fields& f, report& out) {
  static constexpr std::string_view legal[]{"l", "e", "f", "h", "depth"};
  f.only(legal, "model");
  const auto needed = [&](const char* name) { return f.need(name, f.count(name, largest_size)).value_or(1); };
  published_model::transformer m{
      .l = needed("l"), .e = needed("e"), .h = needed("h"), .depth = needed("depth")};
  m.f = f.count("f", largest_size).value_or(m.f);
  if (m.h > m.e)
    refuse(out, "RC8100: the model has h={} heads and e={} elements; e must be at least h", m.h, m.e);
  return m;
}

}  // namespace

search_request read_search(const json& line, report& out) {
  static constexpr std::string_view legal[]{"cost_model", "model",    "strategy",          "system",
                                            "nvs",        "n_gpus",   "global_batch_size", "capacity_gb",
                                            "top",        "corrected"};
  const fields f(line, out);
  f.only(legal);
  f.one_of("cost_model", cost_models);
  search_request r;
  published_model::problem& q = r.of;
  if (const auto given = line.find("model"); given != line.end() && given->is_object()) {
    q.on.model = read_sizes({*given, out}, out);
  } else if (const auto i = f.need("model", f.one_of("model", names_of(models)))) {
    q.on.model = models[*i].sizes;
    r.model = models[*i].name;
  }
  if (const auto i = f.need("strategy", f.one_of("strategy", strategies)))
    q.by = static_cast<published_model::strategy>(*i);
  if (const auto i = f.need("system", f.one_of("system", names_of(published_model::gpu_systems))))
    q.on.gpu = published_model::gpu_systems[*i];
  q.on.gpu.nvlink_size = f.count("nvs", largest_domain).value_or(q.on.gpu.nvlink_size);
  q.on.gpu.hbm_capacity = f.number("capacity_gb").value_or(q.on.gpu.hbm_capacity);
  q.gpus = f.need("n_gpus", f.count("n_gpus", largest_size)).value_or(1);
  q.global_batch = f.need("global_batch_size", f.count("global_batch_size", largest_size)).value_or(1);
  if (f.flag("corrected").value_or(false)) q.on.fix = published_model::corrected;
  r.top = f.count("top").value_or(r.top);
  return r;
}

}  // namespace rankc::tool
