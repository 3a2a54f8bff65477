#include "storage/file_copy.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "storage/checksum.h"
#include "storage/no_throw.h"
#include "storage/segment_format.h"
#include "storage/work_watch.h"

namespace stride {
namespace {

constexpr uint64_t piece_bytes = 1 << 20;
static_assert(piece_bytes % segment_block_bytes == 0);

// Direct writes need it aligned.
class PieceBuffer {
 public:
  explicit PieceBuffer(uint64_t bytes)
      : bytes_(static_cast<std::byte*>(::operator new(bytes, alignment))) {}
  ~PieceBuffer() { ::operator delete(bytes_, alignment); }
  PieceBuffer(const PieceBuffer&) = delete;
  PieceBuffer& operator=(const PieceBuffer&) = delete;
  std::span<std::byte> first(uint64_t bytes) { return {bytes_, bytes}; }

 private:
  static constexpr std::align_val_t alignment{File::direct_alignment};
  std::byte* const bytes_;
};

Status damaged_segment(const FileSource& from, uint64_t offset, const char* what) {
  return Status::corruption(from.path(), offset, what)
      .with_remedy("restore the file from a backup");
}

// Hands out [begin, end) of the file in pieces: visit(offset, bytes).
template <class Visit>
Status read_pieces(const FileSource& from, uint64_t begin, uint64_t end, const Visit& visit) {
  PieceBuffer buffer(std::min(piece_bytes, std::max(end - begin, uint64_t{1})));
  for (uint64_t at = begin; at < end; at += piece_bytes) {
    STRIDE_TRY(WorkWatch::check());
    const std::span<std::byte> piece = buffer.first(std::min(piece_bytes, end - at));
    STRIDE_TRY(from.read_at(at, piece));
    STRIDE_TRY(visit(at, piece));
  }
  return {};
}

// check(offset, bytes) looks at each piece before it is written, and may change it then; checked()
// at the end.
template <class Check, class Checked>
Status copy_pieces(const FileSource& from, FileSystem& fs, const std::string& to,
                   const Check& check, const Checked& checked) {
  Result<std::unique_ptr<File>> made = fs.open(to, OpenMode::create_direct);
  if (!made.ok()) return made.status();
  WorkWatch* watch = WorkWatch::current();
  Status s = no_throw([&] {
    // A file system that is too full says so before anything is written.
    if (from.bytes() > 0) STRIDE_TRY((*made)->allocate(from.bytes()));
    Status copied =
        read_pieces(from, 0, from.bytes(), [&](uint64_t at, std::span<std::byte> piece) {
          STRIDE_TRY(check(at, piece));
          STRIDE_TRY((*made)->write_at(at, piece));
          if (watch) watch->add(piece.size());
          if (watch) watch->add_written(piece.size());
          return Status();
        });
    STRIDE_TRY(std::move(copied));
    STRIDE_TRY(checked());
    return (*made)->sync();
  });
  if (s.ok()) return s;
  made->reset();
  Status ignored = no_throw([&] { return fs.remove(to); });
  return s;
}

// Adds up a file that has no checksums of its own.
class BlockSums {
 public:
  void add(Bytes piece) {
    for (; !piece.empty(); piece = piece.subspan(std::min(segment_block_bytes, piece.size())))
      sums_.push_back(checksum(piece.first(std::min(segment_block_bytes, piece.size()))));
  }
  uint64_t total() const {
    return checksum({reinterpret_cast<const std::byte*>(sums_.data()), 8 * sums_.size()});
  }

 private:
  std::vector<uint64_t> sums_;
};

// Bytes that a copy has in place of those of the file that it is of.
struct Replacement {
  uint64_t offset = 0;
  std::vector<std::byte> bytes;
};

void replace_bytes(const std::vector<Replacement>& replacements, uint64_t at,
                   std::span<std::byte> piece) {
  for (const Replacement& replacement : replacements) {
    const uint64_t begin = std::max(at, replacement.offset);
    const uint64_t end = std::min(at + piece.size(), replacement.offset + replacement.bytes.size());
    if (begin < end)
      std::memcpy(piece.data() + (begin - at),
                  replacement.bytes.data() + (begin - replacement.offset), end - begin);
  }
}

// Of the tables and the footer, as they stand at the end of a file.
Status check_tables(const FileSource& from, const SegmentSums& sums, Bytes end) {
  SegmentFooter footer{};
  const Bytes tables = end.first(end.size() - sizeof footer);
  const Bytes read = end.subspan(tables.size());
  std::memcpy(&footer, read.data(), sizeof footer);
  if (footer.checksum != sums.checksum || checksum(tables) != sums.tables_checksum ||
      checksum(read.first(offsetof(SegmentFooter, checksum))) != sums.checksum)
    return damaged_segment(from, sums.tables_offset, "the file's tables have changed");
  return {};
}

// The first block with another id, whose checksum the tables have then, and the tables with theirs.
Result<std::vector<Replacement>> with_id(uint64_t id, const FileSource& from,
                                         const SegmentSums& sums) {
  std::vector<std::byte> block(std::min(segment_block_bytes, sums.tables_offset));
  std::vector<std::byte> end(sums.bytes - sums.tables_offset);
  STRIDE_TRY(from.read_at(0, block));
  STRIDE_TRY(from.read_at(sums.tables_offset, end));
  if (checksum(block) != sums.blocks[0])
    return damaged_segment(from, 0, "the checksum of a block differs");
  STRIDE_TRY(check_tables(from, sums, end));
  SegmentHeader header{};
  std::memcpy(&header, block.data(), sizeof header);
  header.id = id;
  header.checksum =
      checksum(std::as_bytes(std::span(&header, 1)).first(offsetof(SegmentHeader, checksum)));
  std::memcpy(block.data(), &header, sizeof header);
  SegmentFooter footer{};
  const uint64_t tables_bytes = end.size() - sizeof footer;
  std::memcpy(&footer, end.data() + tables_bytes, sizeof footer);
  const uint64_t block_sum = checksum(block);
  std::memcpy(end.data() + footer.sections * sizeof(SectionEntry), &block_sum, sizeof block_sum);
  footer.id = id;
  footer.tables_checksum = checksum(Bytes(end).first(tables_bytes));
  footer.checksum =
      checksum(std::as_bytes(std::span(&footer, 1)).first(offsetof(SegmentFooter, checksum)));
  std::memcpy(end.data() + tables_bytes, &footer, sizeof footer);
  block.resize(sizeof header);
  std::vector<Replacement> replacements;
  replacements.push_back({0, std::move(block)});
  replacements.push_back({sums.tables_offset, std::move(end)});
  return replacements;
}

// What is checked are the bytes of the file, before any is replaced. The tables are checked again
// as they are copied: all that is written has been.
Status copy_segment_with(const std::vector<Replacement>& replacements, const FileSource& from,
                         const SegmentSums& sums, FileSystem& fs, const std::string& to) {
  if (from.bytes() != sums.bytes)
    return damaged_segment(from, from.bytes(), "the file has changed its size");
  std::vector<std::byte> end;  // the tables and the footer
  end.reserve(sums.bytes - sums.tables_offset);
  auto check = [&](uint64_t at, std::span<std::byte> bytes) -> Status {
    const Bytes piece = bytes;
    for (uint64_t i = 0; i < piece.size() && at + i < sums.tables_offset;
         i += segment_block_bytes) {
      const uint64_t size =
          std::min({segment_block_bytes, piece.size() - i, sums.tables_offset - (at + i)});
      if (checksum(piece.subspan(i, size)) != sums.blocks[(at + i) / segment_block_bytes])
        return damaged_segment(from, at + i, "the checksum of a block differs");
    }
    const uint64_t begin = std::max(at, sums.tables_offset);
    if (begin < at + piece.size()) {
      const Bytes tail = piece.subspan(begin - at);
      end.insert(end.end(), tail.begin(), tail.end());
    }
    replace_bytes(replacements, at, bytes);
    return {};
  };
  return copy_pieces(from, fs, to, check, [&] { return check_tables(from, sums, end); });
}

}  // namespace

Result<FileSource> FileSource::open(FileSystem& fs, const std::string& path) {
  Result<std::unique_ptr<File>> file = fs.open(path, OpenMode::read);
  if (!file.ok()) return file.status();
  Result<uint64_t> bytes = (*file)->size();
  if (!bytes.ok()) return bytes.status();
  return FileSource(std::move(*file), *bytes);
}

// Pages of a mapping are fetched first: a page that can't be read would end the process.
Status FileSource::read_at(uint64_t offset, std::span<std::byte> out) const {
  if (file_) return file_->read_at(offset, out);
  const FileRange range{offset, out.size()};
  if (Status s = mapping_->fetch({&range, 1});
      !s.ok() && s.code() != StatusCode::resource_exhausted)
    return s;
  if (!out.empty()) std::memcpy(out.data(), mapping_->bytes().data() + offset, out.size());
  return {};
}

Result<SegmentSums> read_segment_sums(const FileSource& from, uint64_t id) {
  SegmentFooter footer{};
  const uint64_t bytes = from.bytes();
  if (bytes < 2 * segment_page_bytes || bytes % segment_page_bytes != 0)
    return damaged_segment(from, bytes, "the file is cut off");
  const uint64_t footer_offset = bytes - sizeof footer;
  STRIDE_TRY(from.read_at(footer_offset, std::as_writable_bytes(std::span(&footer, 1))));
  const Bytes read = std::as_bytes(std::span(&footer, 1));
  if (footer.magic != segment_footer_magic)
    return damaged_segment(from, footer_offset, "the footer is missing");
  if (checksum(read.first(offsetof(SegmentFooter, checksum))) != footer.checksum)
    return damaged_segment(from, footer_offset, "the footer's checksum differs");
  if (footer.format_version > segment_format_version)
    return Status(StatusCode::unsupported_version, "the segment's format version " +
                                                       std::to_string(footer.format_version) +
                                                       " is newer than this library")
        .with_file(from.path())
        .with_remedy("use a newer StrideDB");
  const uint64_t begin = footer.tables_offset;
  if (footer.id != id || footer.file_bytes != bytes || begin < segment_page_bytes ||
      begin > footer_offset || footer.sections > section_types ||
      footer.blocks != blocks_of(begin) ||
      footer.sections * sizeof(SectionEntry) + footer.blocks * 8 > footer_offset - begin)
    return damaged_segment(from, footer_offset, "the footer does not belong to this file");
  std::vector<std::byte> tables(footer_offset - begin);
  STRIDE_TRY(from.read_at(begin, tables));
  if (checksum(tables) != footer.tables_checksum)
    return damaged_segment(from, begin, "the checksum of the section and checksum tables differs");
  SegmentSums sums{bytes, footer.checksum, std::vector<uint64_t>(footer.blocks), begin,
                   footer.tables_checksum};
  std::memcpy(sums.blocks.data(), tables.data() + footer.sections * sizeof(SectionEntry),
              footer.blocks * 8);
  return sums;
}

Status copy_segment(const FileSource& from, const SegmentSums& sums, FileSystem& fs,
                    const std::string& to) {
  return copy_segment_with({}, from, sums, fs, to);
}

Status copy_segment_as(uint64_t id, const FileSource& from, const SegmentSums& sums, FileSystem& fs,
                       const std::string& to) {
  if (from.bytes() != sums.bytes)
    return damaged_segment(from, from.bytes(), "the file has changed its size");
  auto replacements = with_id(id, from, sums);
  if (!replacements.ok()) return replacements.status();
  return copy_segment_with(*replacements, from, sums, fs, to);
}

Result<uint64_t> file_checksum(const FileSource& from) {
  BlockSums sums;
  Status s = read_pieces(from, 0, from.bytes(), [&](uint64_t, Bytes piece) {
    sums.add(piece);
    return Status();
  });
  STRIDE_TRY(std::move(s));
  return sums.total();
}

Status copy_file(const FileSource& from, uint64_t checksum, FileSystem& fs, const std::string& to) {
  BlockSums sums;
  auto check = [&](uint64_t, Bytes piece) {
    sums.add(piece);
    return Status();
  };
  return copy_pieces(from, fs, to, check, [&]() -> Status {
    if (sums.total() == checksum) return {};
    return Status::corruption(from.path(), 0, "the file's checksum differs");
  });
}

}  // namespace stride
