#include "storage/segment_writer.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "storage/aligned_bytes.h"
#include "storage/checksum.h"
#include "storage/map_limit.h"
#include "storage/no_throw.h"
#include "storage/piece_writer.h"
#include "storage/reserved_memory.h"
#include "storage/segment_layout.h"
#include "storage/work_watch.h"

namespace stride {

namespace {

constexpr uint64_t piece_bytes = PieceWriter::piece_bytes;

// What a file has besides the caller's sections, at the most.
uint64_t overhead_bytes(uint64_t section_bytes) {
  uint64_t statistics = sizeof(SegmentStatistics) + 2 * uint64_t{max_key_bytes};
  uint64_t data = segment_page_bytes + section_bytes + statistics +
                  section_types * (section_alignment + sizeof(SectionEntry));
  data += (pages_of(data) + 1) * sizeof(uint32_t);
  uint64_t tables = (blocks_of(data) + 1) * 8 + sizeof(SegmentFooter) + segment_page_bytes;
  return data + tables - section_bytes;
}

}  // namespace

struct SegmentWriter::State {
  FileSystem* fs;  // null: it stays in memory
  std::string path;
  uint64_t id;
  SegmentWriterOptions options;
  std::unique_ptr<File> file;
  ReservedMemory image;
  std::unique_ptr<PieceWriter> pieces;  // null where there is no file
  // Final bytes of each piece, padding included; a piece goes out once it has all of them.
  std::vector<std::atomic<uint64_t>> final_bytes;
  std::vector<SectionEntry> sections;
  uint64_t end = segment_page_bytes;  // of the last section, in the file
  uint64_t paged_end = 0;             // where the checksums of pages lie; 0: there are none
  uint32_t format_version = segment_version_plain;
  Status misuse;  // of add_section()
  bool finished = false;

  State(FileSystem* file_system, std::string file_path, uint64_t segment_id,
        SegmentWriterOptions writer_options)
      : fs(file_system),
        path(std::move(file_path)),
        id(segment_id),
        options(writer_options),
        final_bytes(writer_options.max_bytes / piece_bytes + 2) {}
  // The threads use all of this.
  ~State() {
    if (pieces) pieces->cancel();
  }

  std::byte* at(uint64_t offset) const { return image.data() + offset; }
  void account(uint64_t offset, uint64_t bytes);
  void add_statistics(const SegmentSummary& summary);
  void add_page_checksums();
  void write_page_checksums(uint64_t from);
  void write_header(const SegmentSummary& summary);
  // The pieces before this are full once all sections are.
  uint64_t tail_begin(uint64_t data_end) const {
    return (paged_end ? paged_end : data_end) / piece_bytes * piece_bytes;
  }
  void submit_full_pieces(uint64_t data_end);
  uint64_t write_tables(uint64_t data_end, std::span<const uint64_t> checksums);
  Status write_tail(uint64_t data_end);
  Status write_file(uint64_t data_end, WaitFor wait);
  Status write_behind(uint64_t data_end, uint64_t file_bytes);
  Status sync();
};

SegmentWriter::SegmentWriter(std::shared_ptr<State> state) : state_(std::move(state)) {}

SegmentWriter::~SegmentWriter() {
  if (state_->finished || !state_->fs) return;
  state_->pieces->cancel();
  state_->file.reset();
  // A leftover that cannot be removed is in no manifest, and goes when the database is next opened.
  (void)no_throw([&] { return state_->fs->remove(state_->path); });
}

Result<std::unique_ptr<SegmentWriter>> SegmentWriter::create(FileSystem& fs,
                                                             const std::string& path, uint64_t id,
                                                             SegmentWriterOptions options) {
  constexpr uint64_t limit = uint64_t{1} << 46;  // of the address space
  if (options.max_bytes > limit) {
    return Status::invalid("a segment of " + std::to_string(options.max_bytes) + " bytes");
  }
  uint64_t bytes = options.max_bytes + overhead_bytes(options.max_bytes);
  Result<ReservedMemory> image = ReservedMemory::reserve(bytes);
  if (!image.ok()) return image.status();
  Result<std::unique_ptr<File>> file = fs.open(path, OpenMode::create_direct);
  if (!file.ok()) return file.status();
  if (!options.io) options.io = std::make_shared<IoThreads>();
  auto state = std::make_shared<State>(&fs, path, id, options);
  state->image = std::move(*image);
  state->file = std::move(*file);
  state->pieces =
      std::make_unique<PieceWriter>(*state->file, state->image.data(), bytes, *options.io);
  return std::unique_ptr<SegmentWriter>(new SegmentWriter(std::move(state)));
}

Result<std::unique_ptr<SegmentWriter>> SegmentWriter::create_in_memory(uint64_t max_bytes) {
  Result<ReservedMemory> image = ReservedMemory::reserve(max_bytes + overhead_bytes(max_bytes));
  if (!image.ok()) return image.status();
  SegmentWriterOptions options;
  options.max_bytes = max_bytes;
  auto state = std::make_shared<State>(nullptr, "(memory)", 0, options);
  state->image = std::move(*image);
  return std::unique_ptr<SegmentWriter>(new SegmentWriter(std::move(state)));
}

std::span<std::byte> SegmentWriter::add_section(SectionType type, uint64_t bytes) {
  State& s = *state_;
  bool repeated = false;
  uint64_t total = bytes;
  for (const SectionEntry& entry : s.sections) {
    repeated |= entry.type == static_cast<uint32_t>(type);
    if (__builtin_add_overflow(total, entry.bytes, &total)) total = ~uint64_t{0};
  }
  if (repeated || type == SectionType::statistics || total > s.options.max_bytes) {
    s.misuse = Status::invalid(std::string("section ") + std::string(to_string(type)) +
                               (repeated ? " is added twice" : " does not fit the writer's bound"))
                   .with_file(s.path);
    return {};
  }
  uint64_t offset = align_up(s.end, section_alignment);
  s.sections.push_back({static_cast<uint32_t>(type), 0, offset, bytes});
  s.account(s.end, offset - s.end);
  s.end = offset + bytes;
  if (s.pieces) s.pieces->plan(s.end);
  return {s.at(offset), bytes};
}

void SegmentWriter::complete(std::span<const std::byte> range) {
  state_->account(static_cast<uint64_t>(range.data() - state_->image.data()), range.size());
}

void SegmentWriter::State::account(uint64_t offset, uint64_t bytes) {
  if (!pieces) return;
  while (bytes > 0) {
    uint64_t piece = offset / piece_bytes;
    uint64_t part = std::min(bytes, (piece + 1) * piece_bytes - offset);
    // Acquire and release: who completes the piece has seen what all others wrote to it.
    uint64_t before = final_bytes[piece].fetch_add(part, std::memory_order_acq_rel);
    if (before < piece_bytes && before + part >= piece_bytes) pieces->submit(piece);
    offset += part;
    bytes -= part;
  }
}

void SegmentWriter::State::add_statistics(const SegmentSummary& summary) {
  SegmentStatistics head{static_cast<uint32_t>(summary.first_key.size()),
                         static_cast<uint32_t>(summary.last_key.size())};
  uint64_t offset = align_up(end, section_alignment);
  uint64_t bytes = sizeof head + summary.first_key.size() + summary.last_key.size();
  std::byte* out = at(offset);
  std::memcpy(out, &head, sizeof head);
  out += sizeof head;
  if (head.first_key_bytes) std::memcpy(out, summary.first_key.data(), head.first_key_bytes);
  out += head.first_key_bytes;
  if (head.last_key_bytes) std::memcpy(out, summary.last_key.data(), head.last_key_bytes);
  sections.push_back({static_cast<uint32_t>(SectionType::statistics), 0, offset, bytes});
  end = offset + bytes;
}

// They are known, and written, when all that is before them has been.
void SegmentWriter::State::add_page_checksums() {
  if (!pieces || end < least_paged_bytes) return;
  paged_end = align_up(end, section_alignment);
  const uint64_t bytes = pages_of(paged_end) * sizeof(uint32_t);
  sections.push_back({static_cast<uint32_t>(SectionType::page_checksums), 0, paged_end, bytes});
  end = paged_end + bytes;
}

// Into the image; pages from `from` on are not yet known.
void SegmentWriter::State::write_page_checksums(uint64_t from) {
  if (paged_end == 0) return;
  std::vector<uint32_t>& all = pieces->page_checksums();
  for (uint64_t offset = from; offset < paged_end; offset += segment_page_bytes)
    all[offset / segment_page_bytes] =
        page_checksum({at(offset), std::min(segment_page_bytes, paged_end - offset)});
  all[0] = 0;  // the header's: a copy with another id leaves all others as they are
  std::memcpy(at(paged_end), all.data(), pages_of(paged_end) * sizeof(uint32_t));
}

void SegmentWriter::State::write_header(const SegmentSummary& summary) {
  if (summary.distinct_values) format_version = segment_version_shared;
  for (const SectionEntry& section : sections) {
    if (section.type == static_cast<uint32_t>(SectionType::key_sample))
      format_version = std::max(format_version, segment_version_sampled);
    if (section.type == static_cast<uint32_t>(SectionType::key_filter))
      format_version = segment_version_filtered;
  }
  if (paged_end) format_version = segment_version_paged;
  SegmentHeader header{};
  header.magic = segment_magic;
  header.format_version = format_version;
  header.flags = (summary.fixed_keys ? SegmentHeader::fixed_keys : 0) |
                 (summary.fixed_values ? SegmentHeader::fixed_values : 0) |
                 (summary.distinct_values ? SegmentHeader::shared_values : 0);
  header.id = id;
  header.rows = summary.rows;
  header.tombstones = summary.tombstones;
  header.key_width = summary.fixed_keys ? summary.key_width : 0;
  header.value_width = summary.fixed_values ? summary.value_width : 0;
  header.key_delta_width = summary.fixed_keys ? 0 : summary.key_delta_width;
  header.value_delta_width = summary.fixed_values ? 0 : summary.value_delta_width;
  header.distinct_values = summary.distinct_values;
  header.unshared_bytes = summary.unshared_bytes;
  std::memcpy(at(0), &header, sizeof header);
  header.checksum = checksum({at(0), offsetof(SegmentHeader, checksum)});
  std::memcpy(at(0), &header, sizeof header);
}

// The first piece holds the header and so is never complete before.
void SegmentWriter::State::submit_full_pieces(uint64_t data_end) {
  for (uint64_t piece = 0; piece < tail_begin(data_end) / piece_bytes; ++piece) {
    if (final_bytes[piece].load(std::memory_order_acquire) < piece_bytes) pieces->submit(piece);
  }
}

// Into the image. Blocks past the end of `checksums` keep theirs. Returns the size of the file.
uint64_t SegmentWriter::State::write_tables(uint64_t data_end,
                                            std::span<const uint64_t> checksums) {
  uint64_t blocks = blocks_of(data_end);
  uint64_t section_table_bytes = sections.size() * sizeof(SectionEntry);
  std::memcpy(at(data_end), sections.data(), section_table_bytes);
  std::byte* table = at(data_end + section_table_bytes);
  if (!checksums.empty()) std::memcpy(table, checksums.data(), checksums.size_bytes());

  uint64_t tables_end = data_end + section_table_bytes + blocks * 8;
  uint64_t file_bytes = align_up(tables_end + sizeof(SegmentFooter), segment_page_bytes);
  uint64_t footer_offset = file_bytes - sizeof(SegmentFooter);
  SegmentFooter footer{segment_footer_magic,
                       format_version,
                       static_cast<uint32_t>(sections.size()),
                       id,
                       data_end,
                       blocks,
                       file_bytes,
                       checksum({at(data_end), footer_offset - data_end}),
                       0};
  std::memcpy(at(footer_offset), &footer, sizeof footer);
  footer.checksum = checksum({at(footer_offset), offsetof(SegmentFooter, checksum)});
  std::memcpy(at(footer_offset), &footer, sizeof footer);
  return file_bytes;
}

// What follows the full pieces, and the tables. Precondition: the full pieces are written.
Status SegmentWriter::State::write_tail(uint64_t data_end) {
  uint64_t from = tail_begin(data_end);
  write_page_checksums(from);
  std::span<uint64_t> checksums(pieces->checksums().data(), blocks_of(data_end));
  for (uint64_t block = from / segment_block_bytes; block < checksums.size(); ++block) {
    uint64_t offset = block * segment_block_bytes;
    checksums[block] = checksum({at(offset), std::min(segment_block_bytes, data_end - offset)});
  }
  uint64_t file_bytes = write_tables(data_end, checksums);
  STRIDE_TRY(file->write_at(from, {at(from), file_bytes - from}));
  return pieces->allocated() > file_bytes ? file->truncate(file_bytes) : Status();
}

Status SegmentWriter::State::write_file(uint64_t data_end, WaitFor wait) {
  STRIDE_TRY(pieces->drain(WorkWatch::current()));
  STRIDE_TRY(write_tail(data_end));
  STRIDE_TRY(WorkWatch::check());
  return wait == WaitFor::sync ? sync() : Status();
}

// The file has its size from now on, but no footer before all else is written.
Status SegmentWriter::State::write_behind(uint64_t data_end, uint64_t file_bytes) {
  STRIDE_TRY(pieces->reserve(file_bytes));
  STRIDE_TRY(pieces->failure());
  pieces->then([this, data_end] {
    Status status = write_tail(data_end);
    pieces->checksums() = {};
    pieces->page_checksums() = {};
    file.reset();
    return status;
  });
  return pieces->failure();  // where there was no memory for the task, nothing will end the file
}

Status SegmentWriter::State::sync() {
  Status status = file->sync();
  if (status.ok()) return status;
  // Always io_error, whatever the cause: there is nothing that could be tried again.
  return Status(StatusCode::io_error, "what was written may be lost: " + status.message())
      .with_file(path)
      .with_remedy("close the database, see to the disk, and open it again");
}

Result<std::shared_ptr<Segment>> SegmentWriter::finish(const SegmentSummary& summary,
                                                       WaitFor wait) {
  State& s = *state_;
  STRIDE_TRY(s.misuse);
  if (summary.first_key.size() > max_key_bytes || summary.last_key.size() > max_key_bytes) {
    return Status::invalid("the first or last key is too long").with_file(s.path);
  }
  s.add_page_checksums();
  s.add_statistics(summary);  // near the end, of which opening reads some blocks
  s.write_header(summary);
  uint64_t data_end = align_up(s.end, section_alignment);
  if (s.pieces) s.submit_full_pieces(data_end);
  // The columns are found through tables that lack their checksums until the tail is written.
  uint64_t file_bytes = s.write_tables(data_end, {});
  Bytes file_image{s.at(0), file_bytes};
  if (Result<SegmentLayout> layout = SegmentLayout::parse(s.path, s.id, file_image); !layout.ok()) {
    return Status::invalid("sections and summary do not fit: " + layout.status().message())
        .with_file(s.path);
  }
  // A smaller file is one write, which is done as soon as another thread would begin it.
  bool behind =
      s.pieces && wait == WaitFor::space && s.options.keep_resident && data_end >= piece_bytes;
  if (s.pieces && !behind) STRIDE_TRY(s.write_file(data_end, wait));

  std::shared_ptr<const void> owner;
  if (!s.options.keep_resident) {
    Result<std::shared_ptr<const Mapping>> mapping = s.file->map();
    if (!mapping.ok()) return mapping.status();
    file_image = (*mapping)->bytes();
    owner = std::move(*mapping);
  } else {
    s.image.shrink(file_bytes);
    if (behind) {
      owner = state_;
    } else if (belongs_on_heap(file_bytes)) {
      auto copy = std::make_shared<AlignedBytes>();
      copy->resize(file_bytes);
      std::memcpy(copy->data(), file_image.data(), file_bytes);
      file_image = {copy->data(), file_bytes};
      owner = std::move(copy);
    } else {
      owner = std::make_shared<ReservedMemory>(std::move(s.image));
    }
  }
  Result<std::shared_ptr<Segment>> segment = Segment::adopt(
      s.path, s.id, file_image, std::move(owner), s.options.keep_resident ? file_bytes : 0,
      s.options.keep_resident, behind ? s.pieces.get() : nullptr);
  if (!segment.ok()) return segment.status();
  if (behind) STRIDE_TRY(s.write_behind(data_end, file_bytes));
  s.finished = true;
  return segment;
}

}  // namespace stride
