// SPDX-License-Identifier: Apache-2.0
#include "token_writer.hpp"

#include <beside_tokens.hpp>
#include <llm_c_header.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

namespace rankc::tool {

namespace {

constexpr std::size_t block = 1 << 18;  // tokens

/// Appends tokens of one width.
template <class T>
void append(runtime::durable_file& out, const std::vector<int>& ids) {
  const std::vector<T> narrow(ids.begin(), ids.end());
  out.append(narrow.data(), narrow.size() * sizeof(T));
}

/// The header of a token file.
std::array<std::int32_t, runtime::llm_c_header_bytes / sizeof(std::int32_t)> header_of(bool wide,
                                                                                       std::size_t tokens) {
  const runtime::llm_c_form& form = wide ? runtime::wide_llm_c : runtime::narrow_llm_c;
  return {form.magic, form.version, static_cast<std::int32_t>(tokens)};
}

template <class Header>
std::string_view bytes_of(const Header& header) {
  return {reinterpret_cast<const char*>(&header), sizeof header};
}

void open_companion(const std::filesystem::path& tokens, std::string_view extension,
                    std::optional<runtime::output_file>& file) {
  const std::filesystem::path place = companion_of(tokens, extension);
  runtime::remove_unfinished(place.parent_path(), place.filename().string());
  file.emplace(place, 1);
}

}  // namespace

std::filesystem::path companion_of(std::filesystem::path tokens, std::string_view extension) {
  return tokens.replace_extension(extension);
}

token_writer::token_writer(const std::filesystem::path& out, const token_format& format)
    : out_(out), format_(format), file_(out, 1) {
  runtime::remove_unfinished(out.parent_path(), out.filename().string());
  file_.append(bytes_of(header_of(format.wide, 0)));
  if (format.weighs) open_companion(out, runtime::weights_extension, weights_);
  if (!format.masks) return;
  open_companion(out, runtime::mask_extension, mask_);
  mask_->append(bytes_of(runtime::token_mask_header{}));
}

void token_writer::append(const example& one) {
  tokens_ += one.ids.size();
  if (tokens_ > std::numeric_limits<std::int32_t>::max())
    throw runtime::failure(1,
                           "RC8114: {} would hold more than the 2^31 - 1 tokens that its header can count; "
                           "write several files",
                           out_);
  held_.ids.insert(held_.ids.end(), one.ids.begin(), one.ids.end());
  if (mask_) held_.labels.insert(held_.labels.end(), one.labels.begin(), one.labels.end());
  for (std::size_t i = 0; weights_ && i < one.ids.size(); ++i)
    held_.weights.push_back(mask_ && one.labels[i] == runtime::label_is_ignored ? 0 : one.weights[i]);
  if (held_.ids.size() >= block) flush();
}

void token_writer::flush() {
  (format_.wide ? tool::append<std::uint32_t> : tool::append<std::uint16_t>)(file_.file(), held_.ids);
  if (mask_) mask_->append({held_.labels.data(), held_.labels.size()});
  if (weights_) weights_->file().append(held_.weights.data(), held_.weights.size() * sizeof(float));
  counted_ += static_cast<std::size_t>(std::ranges::count(held_.labels, runtime::label_counts));
  held_ = {};
}

void token_writer::finish() {
  flush();
  file_.file().replace(0, bytes_of(header_of(format_.wide, tokens_)));
  if (mask_) {
    const runtime::token_mask_header header{runtime::token_mask_magic, runtime::token_mask_version,
                                            format_.packed, tokens_};
    mask_->file().replace(0, bytes_of(header));
    mask_->put_in_place();
  }
  if (weights_) weights_->put_in_place();
  file_.put_in_place();
}

bool is_token_mask(std::string_view beginning) {
  const auto& magic = runtime::token_mask_magic;
  return beginning.starts_with(std::string_view(magic.data(), magic.size()));
}

}  // namespace rankc::tool
