#include "storage/posix_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <utility>
#include <vector>

#include "storage/aligned_bytes.h"
#include "storage/map_limit.h"
#include "storage/page_fetch.h"

namespace stride {

namespace {

class PosixMapping final : public Mapping {
 public:
  PosixMapping(std::string path, Descriptor fd, void* address, size_t bytes)
      : path_(std::move(path)), fd_(std::move(fd)), address_(address) {
    bytes_ = {static_cast<const std::byte*>(address), bytes};
  }
  ~PosixMapping() override {
    if (address_) ::munmap(address_, bytes_.size());
  }
  PosixMapping(const PosixMapping&) = delete;
  PosixMapping& operator=(const PosixMapping&) = delete;

  bool in_memory(uint64_t offset) const override;
  bool all_in_memory(FileRange range) const override;
  void will_need(FileRange range) const override;
  Status fetch(std::span<const FileRange> ranges) const override;
  void begin_random() const override { advise(1); }
  void end_random() const override { advise(-1); }

 private:
  void advise(int more_random) const;
  FileRange clipped(FileRange range) const {
    uint64_t offset = std::min<uint64_t>(range.offset, bytes_.size());
    return {offset, std::min<uint64_t>(range.bytes, bytes_.size() - offset)};
  }

  const std::string path_;
  const Descriptor fd_;  // may be invalid
  void* address_;
  const CountedMapping counted_;
  mutable std::mutex random_mutex_;
  mutable int random_ = 0;  // readers between begin_random() and end_random()
};

uint64_t memory_page_bytes() {
  static const auto bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

void PosixMapping::advise(int more_random) const {
  std::lock_guard lock(random_mutex_);
  bool before = random_ > 0;
  random_ += more_random;
  bool now = random_ > 0;
  // A hint, whose failure changes nothing.
  if (address_ && now != before) {
    ::madvise(address_, bytes_.size(), now ? MADV_RANDOM : MADV_NORMAL);
  }
}

bool PosixMapping::in_memory(uint64_t offset) const {
  if (offset >= bytes_.size()) return true;
  auto* page = static_cast<char*>(address_) + offset / memory_page_bytes() * memory_page_bytes();
  unsigned char resident = 0;
  return ::mincore(page, 1, &resident) != 0 || (resident & 1) != 0;
}

bool PosixMapping::all_in_memory(FileRange range) const {
  range = clipped(range);
  if (range.bytes == 0) return true;
  if (::access(path_.c_str(), W_OK) != 0) return false;
  const uint64_t page = memory_page_bytes();
  const uint64_t first = range.offset / page * page;
  std::vector<unsigned char> resident((range.offset + range.bytes - first + page - 1) / page);
  return ::mincore(static_cast<char*>(address_) + first, resident.size() * page, resident.data()) ==
             0 &&
         std::ranges::all_of(resident, [](unsigned char r) { return r & 1; });
}

void PosixMapping::will_need(FileRange range) const {
  // The kernel reads no more for one call than its read-ahead or its largest request, whichever is
  // larger: 128 KiB at least, unless read-ahead was made smaller than it is by default.
  constexpr uint64_t piece_bytes = 128 << 10;
  range = clipped(range);
  uint64_t end = range.offset + range.bytes;
  for (uint64_t at = range.offset / memory_page_bytes() * memory_page_bytes(); at < end;) {
    uint64_t bytes = std::min(piece_bytes, end - at);
    if (::madvise(static_cast<char*>(address_) + at, bytes, MADV_WILLNEED) != 0) return;
    at += bytes;
  }
}

Status PosixMapping::fetch(std::span<const FileRange> ranges) const {
  if (!fd_.valid()) {
    for (FileRange range : ranges) will_need(range);
    return {};
  }
  std::vector<FileRange> inside;
  inside.reserve(ranges.size());
  for (FileRange range : ranges) inside.push_back(clipped(range));
  return fetch_pages(fd_.get(), path_, inside);
}

// A small file's bytes, where mappings are scarce.
class CopiedFile final : public Mapping {
 public:
  explicit CopiedFile(AlignedBytes bytes) : copy_(std::move(bytes)) {
    bytes_ = {copy_.data(), copy_.size()};
  }

 private:
  const AlignedBytes copy_;
};

class PosixFile final : public File {
 public:
  PosixFile(std::string path, Descriptor buffered, Descriptor direct)
      : path_(std::move(path)), buffered_(std::move(buffered)), direct_(std::move(direct)) {}

  const std::string& path() const override { return path_; }
  Status read_at(uint64_t offset, std::span<std::byte> out) override;
  Status write_at(uint64_t offset, Bytes data) override;
  Status allocate(uint64_t bytes) override;
  Status truncate(uint64_t bytes) override;
  Status sync() override;
  Result<uint64_t> size() override;
  Result<std::shared_ptr<const Mapping>> map() override;
  bool is_in_place() const override { return is_named(path_, buffered_.get()); }

 private:
  Status failed(int error, const char* what) const {
    return Status::from_errno(error, what, path_);
  }
  bool can_go_direct(uint64_t offset, Bytes data) const;

  const std::string path_;
  const Descriptor buffered_;
  // A second descriptor of the same file, opened with O_DIRECT; invalid where it is not wanted or
  // the file system refused. The kernel keeps the page cache coherent with direct writes, and
  // fsync of either descriptor covers both.
  const Descriptor direct_;
  std::atomic<bool> direct_refused_{false};
};

Status PosixFile::read_at(uint64_t offset, std::span<std::byte> out) {
  size_t done = 0;
  while (done < out.size()) {
    ssize_t n = retry([&] {
      return ::pread(buffered_.get(), out.data() + done, out.size() - done,
                     static_cast<off_t>(offset + done));
    });
    if (n < 0) return failed(errno, "read");
    if (n == 0) {
      return Status::corruption(path_, offset + done, "the file ends early")
          .with_remedy("restore the file from a backup");
    }
    done += static_cast<size_t>(n);
  }
  return {};
}

bool PosixFile::can_go_direct(uint64_t offset, Bytes data) const {
  if (!direct_.valid() || direct_refused_.load(std::memory_order_relaxed)) return false;
  uint64_t bits = offset | data.size() | reinterpret_cast<uintptr_t>(data.data());
  return bits % direct_alignment == 0;
}

Status PosixFile::write_at(uint64_t offset, Bytes data) {
  if (!within_size_limit(offset + data.size())) return failed(EFBIG, "write");
  bool direct = can_go_direct(offset, data);
  while (!data.empty()) {
    int fd = direct ? direct_.get() : buffered_.get();
    ssize_t n =
        retry([&] { return ::pwrite(fd, data.data(), data.size(), static_cast<off_t>(offset)); });
    if (n < 0 && errno == EINVAL && direct) {
      direct_refused_.store(true, std::memory_order_relaxed);
      direct = false;
      continue;
    }
    if (n < 0) return failed(errno, "write");
    if (n == 0) return failed(ENOSPC, "write");
    offset += static_cast<uint64_t>(n);
    data = data.subspan(static_cast<size_t>(n));
    // A partial direct write may end off the alignment; the rest then goes through the cache.
    direct = direct && can_go_direct(offset, data);
  }
  return {};
}

Status PosixFile::allocate(uint64_t bytes) {
  if (!within_size_limit(bytes)) return failed(EFBIG, "allocate");
  int r = retry([&] { return ::fallocate(buffered_.get(), 0, 0, static_cast<off_t>(bytes)); });
  if (r != 0 && errno != EOPNOTSUPP && errno != ENOSYS) return failed(errno, "allocate");
  // fallocate never shrinks, and is absent on some file systems.
  Result<uint64_t> now = size();
  if (!now.ok()) return now.status();
  return *now == bytes ? Status() : truncate(bytes);
}

Status PosixFile::truncate(uint64_t bytes) {
  if (!within_size_limit(bytes)) {
    Result<uint64_t> now = size();
    if (!now.ok()) return now.status();
    if (*now < bytes) return failed(EFBIG, "truncate");
  }
  int r = retry([&] { return ::ftruncate(buffered_.get(), static_cast<off_t>(bytes)); });
  return r == 0 ? Status() : failed(errno, "truncate");
}

Status PosixFile::sync() {
  // fdatasync also writes the metadata that is needed to read the data back: size and extents.
  int r = retry([&] { return ::fdatasync(buffered_.get()); });
  return r == 0 ? Status() : failed(errno, "sync");
}

Result<uint64_t> PosixFile::size() {
  struct stat st;
  if (::fstat(buffered_.get(), &st) != 0) return failed(errno, "stat");
  return static_cast<uint64_t>(st.st_size);
}

Result<std::shared_ptr<const Mapping>> PosixFile::map() {
  Result<uint64_t> bytes = size();
  if (!bytes.ok()) return bytes.status();
  if (*bytes == 0) {
    return std::shared_ptr<const Mapping>(new PosixMapping(path_, Descriptor(), nullptr, 0));
  }
  if (belongs_on_heap(*bytes)) {
    AlignedBytes copy;
    copy.resize(*bytes);
    STRIDE_TRY(read_at(0, {copy.data(), *bytes}));
    return std::shared_ptr<const Mapping>(std::make_shared<CopiedFile>(std::move(copy)));
  }
  void* p = ::mmap(nullptr, *bytes, PROT_READ, MAP_SHARED, buffered_.get(), 0);
  if (p == MAP_FAILED && errno == ENOMEM) return no_room_for_mapping("mmap").with_file(path_);
  if (p == MAP_FAILED) return failed(errno, "mmap");
  return std::shared_ptr<const Mapping>(
      new PosixMapping(path_, spare_descriptor(buffered_.get()), p, *bytes));
}

}  // namespace

std::unique_ptr<File> make_posix_file(std::string path, Descriptor buffered, Descriptor direct) {
  return std::make_unique<PosixFile>(std::move(path), std::move(buffered), std::move(direct));
}

}  // namespace stride
