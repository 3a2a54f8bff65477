#include "adapters/cli/input/input_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "adapters/cli/input/interruptible_read.h"

namespace stride::cli {
namespace {

constexpr size_t packed_bytes = 256 << 10;

// The bytes as they are stored; the first ones may be looked at before they are read.
class StoredFile {
 public:
  StoredFile(int fd, bool owned) : fd_(fd), owned_(owned) {}
  StoredFile(StoredFile&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), owned_(other.owned_), seen_(std::move(other.seen_)) {}
  StoredFile& operator=(StoredFile&&) = delete;
  ~StoredFile() {
    if (owned_ && fd_ >= 0) ::close(fd_);
  }

  ExitStatus look(const std::string& name, size_t bytes) {
    std::vector<std::byte> first(bytes);
    size_t have = 0, got = 1;
    while (have < bytes && got > 0) {
      STRIDE_CLI_TRY(interruptible_read(fd_, name, first.data() + have, bytes - have, &got));
      have += got;
    }
    first.resize(have);
    seen_ = std::move(first);
    return {};
  }
  const std::vector<std::byte>& seen() const { return seen_; }

  ExitStatus read(const std::string& name, std::byte* to, size_t bytes, size_t* got) {
    if (seen_.empty()) return interruptible_read(fd_, name, to, bytes, got);
    *got = std::min(bytes, seen_.size());
    std::memcpy(to, seen_.data(), *got);
    seen_.erase(seen_.begin(), seen_.begin() + static_cast<ptrdiff_t>(*got));
    return {};
  }

 private:
  int fd_;
  bool owned_;
  std::vector<std::byte> seen_;
};

class PlainInput final : public InputStream {
 public:
  explicit PlainInput(StoredFile file) : file_(std::move(file)) {}

 private:
  ExitStatus read_some(std::byte* to, size_t bytes, size_t* got) override {
    STRIDE_CLI_TRY(file_.read(name_, to, bytes, got));
    stored_read_ += *got;
    if (*got == 0 && stored_read_ < stored_bytes_)
      return ExitStatus(ExitCode::failure, name_ + ": became shorter while it was read");
    return {};
  }
  StoredFile file_;
};

// What both packers share: a buffer of packed bytes.
class PackedInput : public InputStream {
 protected:
  explicit PackedInput(StoredFile file) : file_(std::move(file)), packed_(packed_bytes) {}

  // False at the end of the file.
  ExitStatus fill(bool* more) {
    size_t got = 0;
    STRIDE_CLI_TRY(file_.read(name_, packed_.data(), packed_.size(), &got));
    stored_read_ += got;
    at_ = 0;
    end_ = got;
    *more = got > 0;
    return {};
  }
  ExitStatus broken(const std::string& why) const {
    return ExitStatus(ExitCode::bad_input, name_ + ": " + why);
  }

  StoredFile file_;
  std::vector<std::byte> packed_;
  size_t at_ = 0, end_ = 0;
};

class GzipInput final : public PackedInput {
 public:
  explicit GzipInput(StoredFile file) : PackedInput(std::move(file)) {
    constexpr int gzip_window_bits = 15 + 16;
    if (inflateInit2(&stream_, gzip_window_bits) != Z_OK) throw std::bad_alloc();
  }
  ~GzipInput() override { inflateEnd(&stream_); }

 private:
  ExitStatus read_some(std::byte* to, size_t bytes, size_t* got) override {
    *got = 0;
    while (*got == 0) {
      if (at_ == end_) {
        bool more = false;
        STRIDE_CLI_TRY(fill(&more));
        if (!more)
          return between_members_ ? ExitStatus() : broken("ends in the middle of gzip data");
      }
      between_members_ = false;
      stream_.next_in = reinterpret_cast<Bytef*>(packed_.data() + at_);
      stream_.avail_in = static_cast<uInt>(end_ - at_);
      stream_.next_out = reinterpret_cast<Bytef*>(to);
      stream_.avail_out = static_cast<uInt>(std::min<size_t>(bytes, 1 << 30));
      uInt room = stream_.avail_out;
      int result = inflate(&stream_, Z_NO_FLUSH);
      at_ = end_ - stream_.avail_in;
      *got = room - stream_.avail_out;
      if (result == Z_STREAM_END) {
        inflateReset(&stream_);
        between_members_ = true;  // another may follow
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        return broken(std::string("broken gzip data: ") +
                      (stream_.msg ? stream_.msg : "unknown reason"));
      }
    }
    return {};
  }

  z_stream stream_{};
  bool between_members_ = false;
};

class ZstdInput final : public PackedInput {
 public:
  explicit ZstdInput(StoredFile file)
      : PackedInput(std::move(file)), stream_(ZSTD_createDStream()) {
    if (!stream_) throw std::bad_alloc();
  }
  ~ZstdInput() override { ZSTD_freeDStream(stream_); }

 private:
  ExitStatus read_some(std::byte* to, size_t bytes, size_t* got) override {
    *got = 0;
    while (*got == 0) {
      // Even without more input there may be output left.
      if (at_ == end_ && !output_left_) {
        bool more = false;
        STRIDE_CLI_TRY(fill(&more));
        if (!more) return expected_ == 0 ? ExitStatus() : broken("ends in the middle of zstd data");
      }
      ZSTD_inBuffer in{packed_.data(), end_, at_};
      ZSTD_outBuffer out{to, bytes, 0};
      size_t result = ZSTD_decompressStream(stream_, &out, &in);
      if (ZSTD_getErrorCode(result) == ZSTD_error_frameParameter_windowTooLarge)
        return broken(
            "was packed with --long, and unpacking it takes more than 128 MiB of memory: "
            "unpack it with zstd -dc --long=31, and read that");
      if (ZSTD_isError(result))
        return broken(std::string("broken zstd data: ") + ZSTD_getErrorName(result));
      at_ = in.pos;
      *got = out.pos;
      expected_ = result;  // 0: a frame is complete
      output_left_ = out.pos == out.size && result != 0;
    }
    return {};
  }

  ZSTD_DStream* stream_;
  size_t expected_ = 0;
  bool output_left_ = false;
};

Compression packing_of(const std::vector<std::byte>& first) {
  auto starts_with = [&](std::initializer_list<uint8_t> magic) {
    return first.size() >= magic.size() &&
           std::equal(magic.begin(), magic.end(), first.begin(),
                      [](uint8_t a, std::byte b) { return std::byte{a} == b; });
  };
  if (starts_with({0x1f, 0x8b})) return Compression::gzip;
  if (starts_with({0x28, 0xb5, 0x2f, 0xfd})) return Compression::zstd;
  return Compression::none;
}

// Does not wait for somebody who writes to a named pipe: reading from it does, and looks out for
// interrupts meanwhile.
ExitStatus open_file(const std::string& path, int* fd) {
  *fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (*fd < 0) return ExitStatus::from_errno(errno, path, "open");
  fcntl(*fd, F_SETFL, fcntl(*fd, F_GETFL) & ~O_NONBLOCK);
  return {};
}

// From where a regular file stands: of the standard input somebody may have read a part. 0 of
// others.
uint64_t bytes_left(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return 0;
  off_t at = lseek(fd, 0, SEEK_CUR);
  return at < info.st_size ? static_cast<uint64_t>(info.st_size - std::max<off_t>(0, at)) : 0;
}

bool is_open_for_reading(int fd) {
  int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) != O_WRONLY;
}

}  // namespace

ExitStatus InputStream::open(const std::string& path, int standard_input, Compression compression,
                             std::unique_ptr<InputStream>* stream) {
  bool standard = path == "-";
  std::string name = standard ? "standard input" : path;
  if (standard && !is_open_for_reading(standard_input))
    return ExitStatus::usage("standard input is closed: '-' needs a file or a pipe there");
  int fd = standard_input;
  if (!standard) STRIDE_CLI_TRY(open_file(path, &fd));
  StoredFile file(fd, !standard);
  const uint64_t left = bytes_left(fd);
  if (left) posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  if (compression == Compression::automatic) {
    STRIDE_CLI_TRY(file.look(name, 4));
    compression = packing_of(file.seen());
  }
  if (compression == Compression::gzip) {
    *stream = std::make_unique<GzipInput>(std::move(file));
  } else if (compression == Compression::zstd) {
    *stream = std::make_unique<ZstdInput>(std::move(file));
  } else {
    *stream = std::make_unique<PlainInput>(std::move(file));
  }
  (*stream)->name_ = std::move(name);
  (*stream)->stored_bytes_ = left;
  return {};
}

ExitStatus InputStream::read(std::byte* to, size_t bytes, size_t* got) {
  *got = 0;
  while (*got < bytes) {
    size_t n = 0;
    STRIDE_CLI_TRY(read_some(to + *got, bytes - *got, &n));
    if (n == 0) break;
    *got += n;
  }
  return {};
}

uint64_t stored_bytes_of(const std::string& path) {
  struct stat info {};
  bool regular = path != "-" && ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
  return regular ? static_cast<uint64_t>(info.st_size) : 0;
}

}  // namespace stride::cli
