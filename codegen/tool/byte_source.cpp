// SPDX-License-Identifier: Apache-2.0
#include "byte_source.hpp"

#include <rankc/runtime/failure.hpp>
#include <read_file.hpp>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#ifdef RANKC_ZLIB
#include <zlib.h>
#endif
#ifdef RANKC_ZSTD
#include <zstd.h>
#endif

namespace rankc::tool {
namespace {

namespace fs = std::filesystem;
using runtime::failure;

class plain_source : public byte_source {
 public:
  explicit plain_source(fs::path file) : file_(std::move(file)), in_(file_) {
    codegen::require_readable(file_, in_);
  }

  std::size_t read(char* to, std::size_t most) override {
    const ssize_t got = runtime::read_fully(in_.descriptor(), at_, to, most);
    if (got < 0)
      throw failure(1, "RC8130: the file {} cannot be read past byte {}: {}", file_, at_,
                    std::strerror(errno));
    at_ += static_cast<std::size_t>(got);
    return static_cast<std::size_t>(got);
  }

  const fs::path& file() const { return file_; }
  void rewind() { at_ = 0; }

 private:
  fs::path file_;
  runtime::input_file in_;
  std::size_t at_ = 0;
};

[[maybe_unused, noreturn]] void refuse_broken(const fs::path& file, const char* kind, const char* problem) {
  throw failure(1, "RC8131: the file {} begins as {} does, but cannot be decompressed: {}", file, kind,
                problem);
}

[[maybe_unused, noreturn]] void refuse_kind(const fs::path& file, const char* kind, const char* package) {
  throw failure(1,
                "RC8132: the file {} is compressed with {}, and this rankc was built without it; decompress "
                "the file, or install {} and build again",
                file, kind, package);
}

constexpr std::size_t block = 1 << 18;

#ifdef RANKC_ZLIB
/// One or several members of gzip.
class gzip_source : public byte_source {
 public:
  explicit gzip_source(plain_source from) : from_(std::move(from)), block_(block) {
    constexpr int gzip_alone = 15 + 16;
    if (inflateInit2(&stream_, gzip_alone) != Z_OK) throw std::bad_alloc();
  }
  ~gzip_source() override { inflateEnd(&stream_); }
  gzip_source(const gzip_source&) = delete;
  gzip_source& operator=(const gzip_source&) = delete;

  std::size_t read(char* to, std::size_t most) override {
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(most, 1 << 30));
    const uInt room = stream_.avail_out;
    while (stream_.avail_out == room && fill()) {
      const int code = inflate(&stream_, Z_NO_FLUSH);
      is_inside_ = code != Z_STREAM_END;
      if (code == Z_STREAM_END) inflateReset(&stream_);
      else if (code != Z_OK)
        refuse_broken(from_.file(), "gzip", stream_.msg != nullptr ? stream_.msg : "invalid data");
    }
    return room - stream_.avail_out;
  }

 private:
  /// Returns: false at the end of the file.
  bool fill() {
    if (stream_.avail_in > 0) return true;
    stream_.next_in = block_.data();
    stream_.avail_in = static_cast<uInt>(from_.read(reinterpret_cast<char*>(block_.data()), block_.size()));
    if (stream_.avail_in == 0 && is_inside_) refuse_broken(from_.file(), "gzip", "it ends too early");
    return stream_.avail_in > 0;
  }

  plain_source from_;
  std::vector<Bytef> block_;
  z_stream stream_{};
  bool is_inside_ = false;
};
#endif

#ifdef RANKC_ZSTD
/// One or several frames of zstd.
class zstd_source : public byte_source {
 public:
  explicit zstd_source(plain_source from)
      : from_(std::move(from)), block_(block), stream_(ZSTD_createDStream(), ZSTD_freeDStream) {
    if (!stream_) throw std::bad_alloc();
  }

  std::size_t read(char* to, std::size_t most) override {
    ZSTD_outBuffer out{to, most, 0};
    while (out.pos == 0) {
      if (in_.pos == in_.size) in_ = {block_.data(), from_.read(block_.data(), block_.size()), 0};
      const bool is_end = in_.size == 0;
      if (is_end && left_ == 0) break;
      left_ = ZSTD_decompressStream(stream_.get(), &out, &in_);
      if (ZSTD_isError(left_)) refuse_broken(from_.file(), "zstd", ZSTD_getErrorName(left_));
      if (is_end && out.pos == 0) refuse_broken(from_.file(), "zstd", "it ends too early");
    }
    return out.pos;
  }

 private:
  plain_source from_;
  std::vector<char> block_;
  std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  std::size_t left_ = 0;  // of the frame; 0: it is complete
};
#endif

}  // namespace

std::unique_ptr<byte_source> open_bytes(const fs::path& file) {
  plain_source plain(file);
  char first[4]{};
  const std::string_view beginning(first, plain.read(first, sizeof first));
  plain.rewind();
  if (beginning.starts_with("\x1f\x8b")) {
#ifdef RANKC_ZLIB
    return std::make_unique<gzip_source>(std::move(plain));
#else
    refuse_kind(file, "gzip", "zlib1g-dev");
#endif
  }
  if (beginning == "\x28\xb5\x2f\xfd") {
#ifdef RANKC_ZSTD
    return std::make_unique<zstd_source>(std::move(plain));
#else
    refuse_kind(file, "zstd", "libzstd-dev");
#endif
  }
  return std::make_unique<plain_source>(std::move(plain));
}

}  // namespace rankc::tool
