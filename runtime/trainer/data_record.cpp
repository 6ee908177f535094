// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/data_record.hpp>

#include "data_record_json.hpp"
#include "json/json_file.hpp"
#include "json/json_text.hpp"
#include <rankc/trainer/checksum.hpp>
#include <rankc/trainer/mapped_file.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <stdexcept>
#include <string_view>

namespace rankc::runtime {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t hashed_end = std::size_t{1} << 20;  // bytes of each end of a file

ordered_json json_of_files(const std::vector<file_mark>& files) {
  ordered_json list = ordered_json::array();
  for (const file_mark& f : files)
    list.push_back({{"path", json_of_text(f.path)}, {"bytes", f.bytes}, {"hash", f.hash}});
  return list;
}

std::vector<file_mark> files_of_json(const ordered_json& list) {
  std::vector<file_mark> files;
  for (const ordered_json& f : list)
    files.push_back({text_field(f, "path"), field<std::uint64_t>(f, "bytes"), field<std::string>(f, "hash")});
  return files;
}

ordered_json json_of_sources(const std::vector<source_record>& sources) {
  ordered_json list = ordered_json::array();
  for (const source_record& s : sources) {
    ordered_json& out = list.emplace_back(ordered_json{{"source", json_of_text(s.name)},
                                                       {"share", s.share},
                                                       {"samples", s.samples},
                                                       {"tokens", s.tokens},
                                                       {"seq", s.seq},
                                                       {"shuffle", s.shuffle},
                                                       {"first_sample", s.place.first_sample},
                                                       {"first_token", s.place.first_token},
                                                       {"held_from", nullptr},
                                                       {"files", json_of_files(s.files)}});
    if (s.place.held_from) out["held_from"] = *s.place.held_from;
  }
  return list;
}

std::vector<source_record> sources_of_json(const ordered_json& list) {
  std::vector<source_record> sources;
  for (const ordered_json& s : list) {
    source_record& r = sources.emplace_back();
    r = {.name = text_field(s, "source"),
         .share = field<double>(s, "share"),
         .samples = field<std::uint64_t>(s, "samples"),
         .tokens = field<std::uint64_t>(s, "tokens"),
         .seq = field<int>(s, "seq"),
         .shuffle = field<std::string>(s, "shuffle"),
         .place = {field<std::uint64_t>(s, "first_sample"), field<std::uint64_t>(s, "first_token"),
                   std::nullopt},
         .files = files_of_json(value_of(s, "files"))};
    if (!value_of(s, "held_from").is_null()) r.place.held_from = field<std::uint64_t>(s, "held_from");
  }
  return sources;
}

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

void check(const data_record& record) {
  require(!record.sources.empty(), "it has no source of data");
  for (const source_record& s : record.sources)
    require(s.share > 0 && s.share <= 1, "a source has no share from 0 to 1");
  for (const std::vector<source_record>& list : {record.sources, record.earlier})
    for (const source_record& s : list) require(s.seq > 0, "a source has a seq below 1");
}

const file_mark* mark_at(const std::vector<file_mark>& files, const std::string& path) {
  const auto at =
      std::find_if(files.begin(), files.end(), [&](const file_mark& f) { return f.path == path; });
  return at == files.end() ? nullptr : &*at;
}

}  // namespace

file_mark mark_of(const std::filesystem::path& path) {
  const mapped_file file(path);
  const std::string_view bytes = file.bytes();
  checksum sum;
  sum.add(bytes.substr(0, hashed_end));
  if (bytes.size() > hashed_end) sum.add(bytes.substr(std::max(hashed_end, bytes.size() - hashed_end)));
  return {file.name(), bytes.size(), sum.text()};
}

std::uint64_t sample_of_mixture(const data_record& record, std::uint64_t s) {
  for (auto gap = record.gaps.rbegin(); gap != record.gaps.rend(); ++gap)
    if (s >= gap->at) s += gap->count;
  return s - record.first;
}

bool hold_same_bytes(const std::vector<file_mark>& a, const std::vector<file_mark>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const file_mark& x, const file_mark& y) { return x.has_bytes_of(y); });
}

std::string difference(const std::vector<file_mark>& before, const std::vector<file_mark>& now) {
  for (const file_mark& f : now) {
    const file_mark* const old = mark_at(before, f.path);
    if (old == nullptr) return f.path + " is new";
    if (old->bytes != f.bytes) return fmt::format("{} has {} bytes, and had {}", f.path, f.bytes, old->bytes);
    if (old->hash != f.hash) return f.path + " has other bytes";
  }
  for (const file_mark& f : before)
    if (mark_at(now, f.path) == nullptr) return f.path + " is gone";
  return "its files have another order";
}

ordered_json json_of_record(const data_record& record) {
  ordered_json gaps = ordered_json::array();
  for (const sample_gap& gap : record.gaps) gaps.push_back({{"at", gap.at}, {"samples", gap.count}});
  ordered_json root = {{"since_sample", record.first},
                       {"gaps", gaps},
                       {"sources", json_of_sources(record.sources)},
                       {"earlier_sources", json_of_sources(record.earlier)}};
  if (record.held_out) root["held_out_files"] = json_of_files(*record.held_out);
  return root;
}

data_record record_of_json(const ordered_json& root) {
  data_record record{.first = field<std::uint64_t>(root, "since_sample"),
                     .sources = sources_of_json(value_of(root, "sources")),
                     .earlier = sources_of_json(value_of(root, "earlier_sources"))};
  for (const ordered_json& gap : value_of(root, "gaps"))
    record.gaps.push_back({field<std::uint64_t>(gap, "at"), field<std::uint64_t>(gap, "samples")});
  if (root.contains("held_out_files")) record.held_out = files_of_json(root["held_out_files"]);
  check(record);
  return record;
}

}  // namespace rankc::runtime
