// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/outputs.hpp>

#include <rankc/runtime/output_rules.hpp>
#include <rankc/runtime/trace_events.hpp>
#include <rankc/trainer/data_files.hpp>
#include <rankc/trainer/data_spec.hpp>
#include <rankc/trainer/metrics_file.hpp>

namespace rankc::runtime {
namespace {

named_file named(const std::string& option, const std::string& file) { return {option + " " + file, file}; }

void add_files_of(const std::string& option, const std::string& spec, std::vector<named_file>& to) {
  if (spec.empty()) return;
  for (const data_source& source : parse_data_spec(spec).sources)
    if (source.from == data_source::kind::files)
      for (const std::filesystem::path& file : find_data_files(source.path).files)
        to.push_back({option + " " + spec, file});
}

}  // namespace

void refuse_other_files(const options& o) {
  if (!o.metrics.empty())
    refuse_other_kind(named("--metrics", o.metrics), "one of metrics", metrics_file::is_one);
  if (o.trace.empty()) return;
  refuse_other_kind(named("--trace", o.trace), "a trace of a step", is_trace);
  if (!o.metrics.empty()) refuse_same_file(named("--trace", o.trace), {named("--metrics", o.metrics)});
}

void refuse_inputs(const options& o, const run_state& state) {
  if (o.metrics.empty() && o.trace.empty()) return;
  std::vector<named_file> inputs;
  add_files_of("--data", state.data, inputs);
  add_files_of("--labels", state.labels, inputs);
  add_files_of("--eval-data", state.eval_data, inputs);
  if (!o.init.empty() && !hash_seed(o.init)) inputs.push_back(named("--init", o.init));
  if (!o.metrics.empty()) refuse_same_file(named("--metrics", o.metrics), inputs);
  if (!o.trace.empty()) refuse_same_file(named("--trace", o.trace), inputs);
}

}  // namespace rankc::runtime
