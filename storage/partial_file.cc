#include "storage/partial_file.h"

#include <algorithm>
#include <memory>
#include <span>

#include "storage/work_watch.h"

namespace stride {

Result<std::string> read_what_can_be_read(File& file) {
  constexpr uint64_t page_bytes = 4096, piece_bytes = 1 << 20;
  Result<uint64_t> size = file.size();
  if (!size.ok()) return size.status();
  std::string bytes(*size, '\0');
  const auto all = std::as_writable_bytes(std::span(bytes));
  for (uint64_t at = 0; at < *size; at += piece_bytes) {
    STRIDE_TRY(WorkWatch::check());
    const auto piece = all.subspan(at, std::min(piece_bytes, *size - at));
    if (file.read_at(at, piece).ok()) continue;
    for (uint64_t i = 0; i < piece.size(); i += page_bytes) {
      const auto page = piece.subspan(i, std::min<uint64_t>(page_bytes, piece.size() - i));
      if (!file.read_at(at + i, page).ok()) std::fill(page.begin(), page.end(), std::byte{0});
    }
  }
  return bytes;
}

Result<std::string> read_what_can_be_read(FileSystem& fs, const std::string& path) {
  Result<std::unique_ptr<File>> file = fs.open(path, OpenMode::read);
  if (!file.ok()) return file.status();
  return read_what_can_be_read(**file);
}

}  // namespace stride
