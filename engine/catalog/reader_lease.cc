#include "engine/catalog/reader_lease.h"

#include <sys/random.h>

#include <cinttypes>
#include <cstdio>
#include <utility>

#include "storage/checksum.h"
#include "storage/no_throw.h"

namespace stride {
namespace {

constexpr std::string_view lease_prefix = "READER-";
constexpr size_t lease_digits = 16;

std::string lease_line(ManifestPosition position) {
  char text[80];
  std::snprintf(text, sizeof text, "reads manifest %020" PRIu64 " up to byte %020" PRIu64 " ",
                position.number, position.offset);
  return text;
}

}  // namespace

std::string lease_name(uint64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "READER-%016" PRIx64, number);
  return text;
}

bool is_lease_name(std::string_view name) {
  return name.size() == lease_prefix.size() + lease_digits && name.starts_with(lease_prefix) &&
         name.find_first_not_of("0123456789abcdef", lease_prefix.size()) == std::string_view::npos;
}

std::string encode_lease(ManifestPosition position) {
  const std::string line = lease_line(position);
  char sum[32];
  std::snprintf(sum, sizeof sum, "%016" PRIx64 "\n", checksum(as_bytes(line)));
  return line + sum;
}

// The line follows that of the process (FileSystem::lock()), where there is one.
std::optional<ManifestPosition> decode_lease(std::string_view text) {
  const size_t at = text.find("reads manifest ");
  if (at == std::string_view::npos) return std::nullopt;
  const std::string line(text.substr(at));
  ManifestPosition position;
  if (std::sscanf(line.c_str(), "reads manifest %20" SCNu64 " up to byte %20" SCNu64,
                  &position.number, &position.offset) != 2)
    return std::nullopt;
  return line == encode_lease(position) ? std::optional(position) : std::nullopt;
}

Result<std::shared_ptr<ReaderLease>> ReaderLease::take(FileSystem& fs,
                                                       const std::string& directory) {
  // A writer may have looked whether the lock is held in the very moment in which it was taken.
  constexpr int max_attempts = 100;
  for (int attempt = 1;; ++attempt) {
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number))
      return Status(StatusCode::io_error, "the system gives no random numbers");
    const std::string path = directory + "/" + lease_name(number);
    auto lock = fs.lock(path);
    if (lock.status().code() == StatusCode::locked && attempt < max_attempts) continue;
    if (!lock.ok()) return lock.status();
    auto file = fs.open(path, OpenMode::write);
    Status s = file.status();
    Result<uint64_t> size = s.ok() ? (*file)->size() : Result<uint64_t>(s);
    if (size.ok()) {
      auto lease =
          std::shared_ptr<ReaderLease>(new ReaderLease(std::move(*lock), std::move(*file), *size),
                                       [made_in = ProcessMark()](ReaderLease* held) {
                                         if (made_in.is_here()) delete held;
                                       });
      s = lease->write({});
      if (s.ok()) return lease;
      return s;
    }
    (*lock)->remove_if_created();
    return size.status();
  }
}

// A forked child has a copy of the lock that is none.
ReaderLease::~ReaderLease() {
  if (made_in_.is_here()) lock_->remove_if_created();
}

Status ReaderLease::write(ManifestPosition position) {
  return no_throw([&] { return file_->write_at(offset_, as_bytes(encode_lease(position))); });
}

void ReaderLease::move_to(ManifestPosition position) noexcept {
  if (position == position_) return;
  if (write(position).ok()) position_ = position;
}

}  // namespace stride
