// SPDX-License-Identifier: Apache-2.0
#include "documents.hpp"

#include <tokenizer/json_weight.hpp>

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <utility>

#include "byte_source.hpp"

namespace rankc::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t block = 1 << 18, longest = std::numeric_limits<std::int32_t>::max();
constexpr runtime::json_limits line_limits{longest, std::size_t{1} << 20, 0};

/// Appends the next bytes of a file to a text. Returns: false at the end.
bool append_block(byte_source& from, const fs::path& file, std::string& to) {
  const std::size_t before = to.size();
  if (before > longest)
    throw runtime::failure(1, "RC8133: the file {} has a text of more than 2^31 - 1 bytes; split it", file);
  to.resize(before + block);
  to.resize(before + from.read(to.data() + before, block));
  return to.size() > before;
}

/// The lines of a file, without their ends.
class line_reader {
 public:
  explicit line_reader(const fs::path& file) : file_(file), from_(open_bytes(file)) {}

  std::optional<std::string> next() {
    std::size_t searched = 0, end = 0;
    while ((end = text_.find('\n', at_ + searched)) == text_.npos) {
      text_.erase(0, at_);
      at_ = 0;
      searched = text_.size();
      if (append_block(*from_, file_, text_)) continue;
      if (text_.empty()) return std::nullopt;
      return std::exchange(text_, {});
    }
    return text_.substr(std::exchange(at_, end + 1), end - at_);
  }

 private:
  const fs::path& file_;
  std::unique_ptr<byte_source> from_;
  std::string text_;  // bytes that were read; from `at_` on they are not yet returned
  std::size_t at_ = 0;
};

void visit_fields(const fs::path& file, const line_fields& fields,
                  const std::function<void(text_document)>& visit) {
  for_each_line(file, [&](const std::string& line, std::size_t number) {
    const std::string name = fmt::format("{}:{} (--field {})", file.string(), number, fields.text);
    const auto object = runtime::parse_json<nlohmann::json>(line, name, 1, line_limits);
    text_document read{runtime::required<std::string>(object, fields.text.c_str(), "", name, 1)};
    if (!fields.weight.empty())
      read.weight = runtime::read_weight(runtime::json_place(name, object).at(fields.weight));
    visit(std::move(read));
  });
}

}  // namespace

void for_each_line(const fs::path& file, const std::function<void(const std::string&, std::size_t)>& visit) {
  line_reader lines(file);
  for (std::size_t number = 1; const std::optional<std::string> line = lines.next(); ++number)
    if (line->find_first_not_of(" \t\r") != line->npos) visit(*line, number);
}

void for_each_document(const fs::path& file, const line_fields& fields,
                       const std::function<void(text_document)>& visit) {
  if (!fields.text.empty()) return visit_fields(file, fields, visit);
  const auto from = open_bytes(file);
  std::string text;
  while (append_block(*from, file, text)) {
  }
  visit({std::move(text)});
}

}  // namespace rankc::tool
