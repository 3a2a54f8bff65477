#include "storage/segment.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <initializer_list>
#include <utility>
#include <vector>

#include "storage/block_check.h"
#include "storage/checksum.h"
#include "storage/first_failure.h"
#include "storage/piece_writer.h"
#include "storage/segment_layout.h"
#include "storage/segment_verify.h"
#include "storage/work_watch.h"

namespace stride {

struct Segment::State {
  std::string path;
  uint64_t id = 0;
  std::shared_ptr<const void> owner;  // of the bytes: a mapping, or the writer's image
  PieceWriter* writing = nullptr;     // of the owner; null: the file was whole from the start
  bool is_unreadable = false;         // `failure` says why
  bool was_written_here = false;
  uint64_t resident_bytes = 0;
  SegmentLayout layout;
  Bytes first_key, last_key;

  // One bit a block, set once the block has matched its checksum. The blocks never change, so that
  // a reader needs no more order than to see its bit set.
  std::unique_ptr<std::atomic<uint64_t>[]> verified;
  std::atomic<uint64_t> needed_blocks{0};  // that are not verified

  // One bit a page, likewise, where pages have checksums; a page of a verified block needs none.
  std::unique_ptr<std::atomic<uint64_t>[]> verified_pages;

  std::atomic<int64_t> in_memory_until{0};  // of the steady clock, in ns
  std::atomic<uint64_t> in_memory_queries{0};

  FirstFailure failure;

  bool is_verified(uint64_t block) const {
    return verified[block >> 6].load(std::memory_order_relaxed) >> (block & 63) & 1;
  }
  bool is_page_verified(uint64_t page) const {
    return is_verified(page / pages_per_block) ||
           (verified_pages[page >> 6].load(std::memory_order_relaxed) >> (page & 63) & 1);
  }
  // Whether rows are read from a block, and how many such blocks there are.
  bool is_needed(uint64_t block) const;
  uint64_t count_needed() const;
  bool is_worth_a_page(uint64_t page) const;
  bool is_in_rows(uint64_t offset, uint64_t bytes) const;
  FileRange checksum_of_page(uint64_t page) const;
  bool check_pages(uint64_t offset, uint64_t bytes);
  bool check_page(uint64_t page);
  bool matches_page_checksum(uint64_t page) const {
    return layout.page_checksums[page] == (page == 0 ? 0 : page_checksum(layout.page(page)));
  }
  bool verify_pages(uint64_t block);
  bool matches_checksum(uint64_t block);
  bool matches_checksums(Bytes bytes);
  bool check_block(uint64_t block);
  bool check_block_ends(uint64_t first, uint64_t last);
  // What owns bytes that are not resident is a mapping: see open() and SegmentWriter::finish().
  const Mapping* mapping() const {
    return resident_bytes ? nullptr : static_cast<const Mapping*>(owner.get());
  }
  Status bring(std::initializer_list<FileRange> ranges, FileRange next) const;
  void fail(uint64_t offset, std::string message);
  static constexpr uint64_t pages_per_block = segment_block_bytes / segment_page_bytes;
};

void Segment::State::fail(uint64_t offset, std::string message) {
  if (failure.failed()) return;
  failure.report(Status::corruption(path, offset, std::move(message))
                     .with_remedy("restore the file from a backup"));
}

bool Segment::State::matches_checksum(uint64_t block) {
  if (checksum(layout.block(block)) == layout.checksums[block]) return true;
  uint64_t offset = block * segment_block_bytes;
  uint64_t last = offset + layout.block(block).size() - 1;
  std::string name = layout.section_name_at(offset);
  std::string last_name = layout.section_name_at(last);
  if (last_name != name) name += " to " + last_name;
  fail(offset, "the checksum of a block differs, in " + name);
  return false;
}

bool Segment::State::matches_checksums(Bytes bytes) {
  if (bytes.empty()) return true;
  auto offset = static_cast<uint64_t>(bytes.data() - layout.file.data());
  uint64_t last = (offset + bytes.size() - 1) / segment_block_bytes;
  for (uint64_t block = offset / segment_block_bytes; block <= last; ++block) {
    if (!is_verified(block) && !matches_checksum(block)) return false;
  }
  return true;
}

namespace {

// What no row is read from: it need not be intact for rows to be.
bool is_beside_rows(const SectionEntry& section) {
  const auto type = static_cast<SectionType>(section.type);
  return section.bytes == 0 || type == SectionType::key_sample ||
         type == SectionType::page_checksums;
}

}  // namespace

bool Segment::State::is_needed(uint64_t block) const {
  const uint64_t first = block * segment_block_bytes, end = first + segment_block_bytes;
  return std::ranges::any_of(layout.sections, [&](const SectionEntry& section) {
    return !is_beside_rows(section) && section.offset < end &&
           section.offset + section.bytes > first;
  });
}

uint64_t Segment::State::count_needed() const {
  auto sections = layout.sections;
  std::ranges::sort(sections, {}, &SectionEntry::offset);
  uint64_t count = 0, counted_to = 0;  // blocks
  for (const SectionEntry& section : sections) {
    if (is_beside_rows(section)) continue;
    const uint64_t first = std::max(section.offset / segment_block_bytes, counted_to);
    counted_to = std::max(blocks_of(section.offset + section.bytes), first);
    count += counted_to - first;
  }
  return count;
}

// Once so many pages of a block have been read, all of it is, and then needs no more than its bit.
bool Segment::State::is_worth_a_page(uint64_t page) const {
  constexpr int most_pages = 7;
  constexpr uint64_t of_block = (uint64_t{1} << pages_per_block) - 1;
  const uint64_t first = page / pages_per_block * pages_per_block;
  const uint64_t bits = verified_pages[first >> 6].load(std::memory_order_relaxed);
  return std::popcount(bits >> (first & 63) & of_block) < most_pages;
}

// Whether they lie in blocks of which nothing but the checksum tells whether they are right, and
// all of whose pages have one: a file may have any section before another.
bool Segment::State::is_in_rows(uint64_t offset, uint64_t bytes) const {
  const uint64_t paged_end = checksum_of_page(0).offset;
  for (SectionType type : {SectionType::value_data, SectionType::key_data}) {
    const SectionEntry& section = layout.sections[static_cast<uint32_t>(type)];
    const uint64_t first = blocks_of(section.offset) * segment_block_bytes;
    const uint64_t end = std::min(section.offset + section.bytes, paged_end) / segment_block_bytes *
                         segment_block_bytes;
    if (section.type && offset >= first && offset < end) return bytes <= end - offset;
  }
  return false;
}

FileRange Segment::State::checksum_of_page(uint64_t page) const {
  const SectionEntry& all = layout.sections[static_cast<uint32_t>(SectionType::page_checksums)];
  return {all.offset + page * sizeof(uint32_t), sizeof(uint32_t)};
}

// False: the blocks have to be checked.
bool Segment::State::check_pages(uint64_t offset, uint64_t bytes) {
  if (!verified_pages || bytes > segment_page_bytes || !is_in_rows(offset, bytes)) return false;
  const uint64_t last = (offset + bytes - 1) / segment_page_bytes;
  for (uint64_t page = offset / segment_page_bytes; page <= last; ++page)
    if (!is_page_verified(page) && !(is_worth_a_page(page) && check_page(page))) return false;
  return true;
}

bool Segment::State::check_page(uint64_t page) {
  const uint64_t block = checksum_of_page(page).offset / segment_block_bytes;
  if (!is_verified(block) &&
      (checksum(layout.block(block)) != layout.checksums[block] || !check_block(block)))
    return false;
  if (!matches_page_checksum(page)) return false;
  verified_pages[page >> 6].fetch_or(uint64_t{1} << (page & 63), std::memory_order_relaxed);
  return true;
}

// Precondition: the block and the checksums of its pages are intact.
bool Segment::State::verify_pages(uint64_t block) {
  const uint64_t end = std::min((block + 1) * pages_per_block, layout.page_checksums.size());
  for (uint64_t page = block * pages_per_block; page < end; ++page) {
    if (matches_page_checksum(page)) continue;
    fail(checksum_of_page(page).offset,
         "section page_checksums has another checksum for the page at " +
             std::to_string(page * segment_page_bytes));
    return false;
  }
  return true;
}

bool Segment::State::check_block(uint64_t block) {
  if (!matches_checksum(block)) return false;
  BytesBeside beside = bytes_beside(layout, block);
  if (!matches_checksums(beside.key_bases) || !matches_checksums(beside.value_bases)) return false;
  if (auto fault = fault_in_block(layout, block)) {
    fail(fault->offset, std::move(fault->what));
    return false;
  }
  uint64_t bit = uint64_t{1} << (block & 63);
  uint64_t before = verified[block >> 6].fetch_or(bit, std::memory_order_relaxed);
  if (!(before & bit) && is_needed(block)) needed_blocks.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

// Checks the ends of blocks [first, last), each of which has been checked, as has the one after it.
bool Segment::State::check_block_ends(uint64_t first, uint64_t last) {
  for (uint64_t block = first; block < last; ++block) {
    if (auto fault = fault_at_block_end(layout, block)) {
      fail(fault->offset, std::move(fault->what));
      return false;
    }
  }
  return true;
}

Segment::Segment(std::unique_ptr<State> state) : state_(std::move(state)) {}

Segment::~Segment() = default;

namespace {

// Brings header, statistics, tables and footer into the page cache with two exact reads. A page
// fault in the mapping would read megabytes around each, as much as the disk's read-ahead is.
Status read_ends(File& file) {
  Result<uint64_t> size = file.size();
  if (!size.ok()) return size.status();
  constexpr uint64_t max_tail_bytes = 64 << 20;
  uint64_t tail = segment_page_bytes + 3 * segment_block_bytes + blocks_of(*size) * 8;
  std::vector<std::byte> scratch(std::min({tail, *size, max_tail_bytes}));
  STRIDE_TRY(file.read_at(*size - scratch.size(), scratch));
  return file.read_at(0, std::span(scratch).first(std::min(*size, segment_page_bytes)));
}

}  // namespace

Result<std::shared_ptr<Segment>> Segment::open(FileSystem& fs, const std::string& path,
                                               uint64_t id) {
  Result<std::unique_ptr<File>> file = fs.open(path, OpenMode::read);
  if (!file.ok()) return file.status();
  STRIDE_TRY(read_ends(**file));
  Result<std::shared_ptr<const Mapping>> mapping = (*file)->map();
  if (!mapping.ok()) return mapping.status();
  Bytes bytes = (*mapping)->bytes();
  return adopt(path, id, bytes, std::move(*mapping), 0, false);
}

std::shared_ptr<Segment> Segment::unreadable(const std::string& path, uint64_t id, Status why) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->id = id;
  state->is_unreadable = true;
  state->failure.report(std::move(why));
  return std::shared_ptr<Segment>(new Segment(std::move(state)));
}

Result<std::shared_ptr<Segment>> Segment::adopt(const std::string& path, uint64_t id, Bytes file,
                                                std::shared_ptr<const void> owner,
                                                uint64_t resident_bytes, bool intact,
                                                PieceWriter* writing) {
  Result<SegmentLayout> layout = SegmentLayout::parse(path, id, file);
  if (!layout.ok()) return layout.status();
  auto state = std::make_unique<State>();
  state->path = path;
  state->id = id;
  state->owner = std::move(owner);
  state->writing = writing;
  state->resident_bytes = resident_bytes;
  state->layout = *layout;
  state->was_written_here = intact;
  uint64_t words = (layout->footer.blocks + 63) / 64;
  state->needed_blocks.store(state->count_needed(), std::memory_order_relaxed);
  state->verified = std::make_unique<std::atomic<uint64_t>[]>(words);
  if (!layout->page_checksums.empty() && !intact)
    state->verified_pages =
        std::make_unique<std::atomic<uint64_t>[]>((layout->page_checksums.size() + 63) / 64);
  std::shared_ptr<Segment> segment(new Segment(std::move(state)));
  segment->intact_.store(intact, std::memory_order_release);
  STRIDE_TRY(segment->read_statistics());
  return segment;
}

Status Segment::read_statistics() {
  Bytes section = this->section(SectionType::statistics);
  if (!ensure(section.data(), section.size())) return failure();
  uint64_t offset = static_cast<uint64_t>(section.data() - state_->layout.file.data());
  SegmentStatistics head{};
  if (section.size() >= sizeof head) std::memcpy(&head, section.data(), sizeof head);
  if (sizeof head + uint64_t{head.first_key_bytes} + head.last_key_bytes != section.size()) {
    return Status::corruption(state_->path, offset, "the section statistics does not hold")
        .with_remedy("restore the file from a backup");
  }
  state_->first_key = section.subspan(sizeof head, head.first_key_bytes);
  state_->last_key = section.last(head.last_key_bytes);
  const PackedColumn& keys = state_->layout.keys;
  auto fits = [&](Bytes key) {
    return keys.fixed ? key.size() == keys.width : key.size() <= max_key_bytes;
  };
  int order = compare(state_->first_key, state_->last_key);
  if (keys.size == 0 || (fits(state_->first_key) && fits(state_->last_key) &&
                         (keys.size == 1 ? order == 0 : order < 0)))
    return {};
  return Status::corruption(
             state_->path, offset,
             "the section statistics names keys that cannot be the first and the last")
      .with_remedy("restore the file from a backup");
}

namespace {

constexpr int64_t in_memory_ns = 10'000'000;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void Segment::note_in_memory(uint64_t queries) const {
  state_->in_memory_queries.store(queries, std::memory_order_relaxed);
  state_->in_memory_until.store(now_ns() + in_memory_ns, std::memory_order_relaxed);
}
bool Segment::was_in_memory_lately(uint64_t queries) const {
  constexpr uint64_t much_larger = 8;
  return queries > 0 &&
         queries <= state_->in_memory_queries.load(std::memory_order_relaxed) * much_larger &&
         now_ns() < state_->in_memory_until.load(std::memory_order_relaxed);
}

uint64_t Segment::id() const { return state_->id; }
uint64_t Segment::rows() const { return state_->layout.header.rows; }
uint64_t Segment::tombstones() const { return state_->layout.header.tombstones; }
const std::string& Segment::path() const { return state_->path; }
uint64_t Segment::bytes_on_disk() const { return state_->layout.file.size(); }
uint64_t Segment::saved_bytes() const {
  if (!state_->layout.values.shared()) return 0;
  uint64_t stored = 0;
  for (SectionType type : {SectionType::value_data, SectionType::value_bases,
                           SectionType::value_deltas, SectionType::value_numbers})
    stored += section(type).size();
  return std::max(state_->layout.header.unshared_bytes, stored) - stored;
}
uint64_t Segment::resident_bytes() const { return state_->resident_bytes; }

const Mapping* Segment::mapping() const { return state_->mapping(); }

PackedColumn Segment::keys() const { return state_->layout.keys; }
ValueRows Segment::values() const { return state_->layout.values; }
Bytes Segment::tree() const { return section(SectionType::tree); }
Bytes Segment::section(SectionType type) const { return state_->layout.section(type); }
Bytes Segment::first_key() const { return state_->first_key; }
Bytes Segment::last_key() const { return state_->last_key; }

const uint8_t* Segment::kinds() const {
  return reinterpret_cast<const uint8_t*>(section(SectionType::kinds).data());
}

bool Segment::ensure(const void* p, uint64_t bytes) {
  if (bytes == 0 || intact()) return true;
  uintptr_t start = reinterpret_cast<uintptr_t>(state_->layout.file.data());
  uint64_t offset = reinterpret_cast<uintptr_t>(p) - start;  // wraps where p is before the file
  uint64_t limit = state_->layout.footer.tables_offset;
  if (offset >= limit || bytes > limit - offset) {
    state_->fail(limit, "a read past the last section");
    return false;
  }
  uint64_t first = offset / segment_block_bytes;
  uint64_t last = (offset + bytes - 1) / segment_block_bytes;
  if (first == last && state_->is_verified(first)) return true;
  return state_->check_pages(offset, bytes) || check_blocks(first, last);
}

bool Segment::ensure_section(SectionType type) {
  const SectionEntry& entry = state_->layout.sections[static_cast<uint32_t>(type)];
  if (entry.bytes == 0 || was_written_here()) return true;
  return check_blocks(entry.offset / segment_block_bytes,
                      (entry.offset + entry.bytes - 1) / segment_block_bytes);
}

bool Segment::is_paged() const { return !state_->layout.page_checksums.empty(); }

bool Segment::checks_page(uint64_t offset, FileRange* checksum) const {
  if (!state_->verified_pages || !state_->is_in_rows(offset, 1)) return false;
  const uint64_t page = offset / segment_page_bytes;
  *checksum = state_->checksum_of_page(page);
  return state_->is_page_verified(page) || state_->is_worth_a_page(page);
}

bool Segment::was_written_here() const { return state_->was_written_here; }

bool Segment::is_verified(uint64_t offset) const {
  return intact() || state_->is_verified(offset / segment_block_bytes);
}

bool Segment::check_blocks(uint64_t first, uint64_t last) {
  for (uint64_t block = first; block <= last; ++block) {
    if (!state_->is_verified(block) && !state_->check_block(block)) return false;
  }
  if (!state_->check_block_ends(first, last)) return false;
  if (state_->needed_blocks.load(std::memory_order_relaxed) == 0) {
    if (!state_->check_block_ends(0, state_->layout.footer.blocks - 1)) return false;
    intact_.store(true, std::memory_order_release);
  }
  return true;
}

Status Segment::open_failure() const { return state_->is_unreadable ? failure() : Status(); }

Status Segment::damage(SectionType type, const std::string& what, uint64_t at) const {
  uint64_t offset = state_->layout.sections[static_cast<uint32_t>(type)].offset + at;
  return Status::corruption(state_->path, offset,
                            "section " + std::string(to_string(type)) + " " + what)
      .with_remedy("restore the file from a backup");
}

Status Segment::failure() const { return state_->failure.status(); }

bool Segment::being_written() const { return state_->writing && state_->writing->busy(); }

Status Segment::finish_write() const {
  Status status = state_->writing ? state_->writing->drain() : Status();
  if (status.ok()) return status;
  // Always io_error, whatever the cause: there is nothing that could be tried again.
  return Status(StatusCode::io_error, "what was committed may be lost: " + status.message())
      .with_file(state_->path)
      .with_remedy("close the database, see to the disk, and open it again");
}

// Reads what is not in memory, and begins to read what comes next: what the disk can't read, or the
// file has lost, is an error here; through the mapping it would end the process.
Status Segment::State::bring(std::initializer_list<FileRange> ranges, FileRange next) const {
  if (!mapping() ||
      std::ranges::all_of(ranges, [&](FileRange r) { return mapping()->all_in_memory(r); }))
    return {};
  Status s = mapping()->fetch({ranges.begin(), ranges.end()});
  mapping()->will_need(next);
  return s.code() == StatusCode::resource_exhausted ? Status() : s;
}

Status Segment::verify() {
  STRIDE_TRY(open_failure());
  STRIDE_TRY(finish_write());  // it makes the checksums
  // All of it again, also what a read has checked already: memory and disks decay.
  const SegmentLayout& layout = state_->layout;
  const auto range_of = [&](SectionType type) {
    const SectionEntry& section = layout.sections[static_cast<uint32_t>(type)];
    return FileRange{section.offset, section.bytes};
  };
  const uint64_t tables = layout.footer.tables_offset;
  STRIDE_TRY(state_->bring({{0, segment_page_bytes},
                            range_of(SectionType::key_bases),
                            range_of(SectionType::value_bases),
                            range_of(SectionType::page_checksums),
                            {tables, layout.file.size() - tables}},
                           /*next=*/{}));
  STRIDE_TRY(SegmentLayout::parse(state_->path, state_->id, layout.file).status());
  if (const FileRange sums = range_of(SectionType::page_checksums); sums.bytes > 0)
    for (uint64_t block = sums.offset / segment_block_bytes;
         block * segment_block_bytes < sums.offset + sums.bytes; ++block)
      if (!state_->check_block(block)) return failure();
  constexpr uint64_t window_blocks = 256;
  const auto window_at = [](uint64_t block) {
    return FileRange{block * segment_block_bytes, window_blocks * segment_block_bytes};
  };
  for (uint64_t block = 0; block < layout.footer.blocks; ++block) {
    STRIDE_TRY(WorkWatch::check());
    if (block % window_blocks == 0)
      STRIDE_TRY(state_->bring({window_at(block)}, /*next=*/window_at(block + window_blocks)));
    if (!state_->check_block(block) || !state_->verify_pages(block)) return failure();
  }
  STRIDE_TRY(verify_rows(state_->path, layout, state_->first_key, state_->last_key));
  intact_.store(true, std::memory_order_release);
  return {};
}

}  // namespace stride
