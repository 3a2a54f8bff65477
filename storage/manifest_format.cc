#include "storage/manifest_format.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <limits>

#include "storage/checksum.h"
#include "storage/file_number.h"

namespace stride {

namespace {

constexpr std::string_view name_prefix = "MANIFEST-";
constexpr std::string_view segment_suffix = ".seg";
constexpr size_t max_table_name_bytes = 255;

std::string hex(uint64_t n) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(n));
  return text;
}

uint64_t padded(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

using TableFlags = CreatedTableWithFlags;

uint32_t flags_of(const TableRecord& table) {
  uint32_t flags = static_cast<uint32_t>(table.numbers) << TableFlags::number_shift;
  if (table.share_equal_values) flags |= TableFlags::share_equal_values;
  if (table.sums_wrap) flags |= TableFlags::sums_wrap;
  return flags;
}

// Whether all of them are known, and go together.
bool set_flags(uint32_t flags, TableRecord* table) {
  uint32_t type = flags >> TableFlags::number_shift;
  if (type > static_cast<uint32_t>(NumberType::f64)) return false;
  table->numbers = static_cast<NumberType>(type);
  table->share_equal_values = flags & TableFlags::share_equal_values;
  table->sums_wrap = flags & TableFlags::sums_wrap;
  return flags_of(*table) == flags && (!table->sums_wrap || is_integer(table->numbers));
}

constexpr FieldType expiry_units[] = {FieldType::timestamp_s, FieldType::timestamp_ms,
                                      FieldType::timestamp_us, FieldType::timestamp_ns};

CreatedTableThatExpires with_expiry(const CreatedTableWithFlags& table, const ExpiryCell& cell) {
  const auto* unit = std::find(std::begin(expiry_units), std::end(expiry_units), cell.unit);
  return {table, cell.offset,      cell.valid_bit, static_cast<uint32_t>(unit - expiry_units),
          0,     cell.time_to_live};
}

class EditEncoder {
 public:
  void put(const void* p, size_t bytes) {
    auto* b = static_cast<const std::byte*>(p);
    out_.insert(out_.end(), b, b + bytes);
  }
  template <class T>
  void field(EditTag tag, const T& body, std::string_view rest = {}) {
    EditField head{static_cast<uint32_t>(tag), static_cast<uint32_t>(sizeof body + rest.size())};
    put(&head, sizeof head);
    put(&body, sizeof body);
    put(rest.data(), rest.size());
  }
  std::vector<std::byte>& out() { return out_; }

 private:
  std::vector<std::byte> out_;
};

class EditDecoder {
 public:
  EditDecoder(Bytes payload, const std::string& file, uint64_t offset)
      : left_(payload), file_(file), offset_(offset) {}

  Status run(VersionEdit* edit) {
    while (!left_.empty()) {
      EditField head{};
      if (!take(&head) || head.bytes > left_.size()) return damaged("a field is cut off");
      Bytes body = left_.first(head.bytes);
      left_ = left_.subspan(head.bytes);
      STRIDE_TRY(decode_field(static_cast<EditTag>(head.tag), body, edit));
    }
    return {};
  }

 private:
  template <class T>
  bool take(T* value) {
    if (left_.size() < sizeof *value) return false;
    std::memcpy(value, left_.data(), sizeof *value);
    left_ = left_.subspan(sizeof *value);
    return true;
  }
  template <class T>
  Status whole(Bytes body, T* value) const {
    if (body.size() != sizeof *value) return damaged("a field has the wrong size");
    std::memcpy(value, body.data(), sizeof *value);
    return {};
  }
  Status damaged(const char* what) const {
    return Status::corruption(file_, offset_, std::string("version edit: ") + what)
        .with_remedy("restore the database from a backup");
  }
  Status decode_field(EditTag tag, Bytes body, VersionEdit* edit) const;
  Status newer(const std::string& what) const {
    return Status(StatusCode::unsupported_version, "version edit: " + what)
        .with_file(file_)
        .with_offset(offset_)
        .with_remedy("open the database with a newer StrideDB");
  }
  Status decode_table(Bytes body, VersionEdit* edit) const;
  Status decode_table_with_flags(Bytes body, VersionEdit* edit) const;
  Status decode_table_that_expires(Bytes body, VersionEdit* edit) const;
  Status decode_renamed_table(Bytes body, VersionEdit* edit) const;
  Status decode_segment(Bytes body, VersionEdit* edit) const;
  Status decode_segment_that_expires(Bytes body, VersionEdit* edit) const;
  Status decode_log(Bytes body, VersionEdit* edit) const;
  Status decode_sealed_log(Bytes body, VersionEdit* edit) const;
  Status decode_erased_rows(Bytes body, VersionEdit* edit) const;

  Bytes left_;
  const std::string& file_;
  const uint64_t offset_;
};

Status EditDecoder::decode_field(EditTag tag, Bytes body, VersionEdit* edit) const {
  switch (tag) {
    case EditTag::next_id:
      return whole(body, &edit->next_id);
    case EditTag::created_table:
      return decode_table(body, edit);
    case EditTag::dropped_table:
      return whole(body, &edit->dropped.emplace_back());
    case EditTag::added_segment:
      return decode_segment(body, edit);
    case EditTag::removed_segment:
      return whole(body, &edit->removed.emplace_back());
    case EditTag::created_table_with_flags:
      return decode_table_with_flags(body, edit);
    case EditTag::created_log:
      return decode_log(body, edit);
    case EditTag::removed_log:
      return whole(body, &edit->removed_logs.emplace_back());
    case EditTag::sealed_log:
      return decode_sealed_log(body, edit);
    case EditTag::erased_rows:
      return decode_erased_rows(body, edit);
    case EditTag::renamed_table:
      return decode_renamed_table(body, edit);
    case EditTag::created_table_that_expires:
      return decode_table_that_expires(body, edit);
    case EditTag::added_segment_that_expires:
      return decode_segment_that_expires(body, edit);
    case EditTag::synced_logs:
      return whole(body, &edit->synced_logs.emplace());
  }
  return newer("unknown tag " + std::to_string(static_cast<uint32_t>(tag)));
}

Status EditDecoder::decode_table(Bytes body, VersionEdit* edit) const {
  CreatedTable table{};
  if (body.size() <= sizeof table || body.size() > sizeof table + max_table_name_bytes) {
    return damaged("a table's name has the wrong size");
  }
  std::memcpy(&table, body.data(), sizeof table);
  std::string name(as_text(body.subspan(sizeof table)));
  edit->created.push_back({table.id, std::move(name), table.key_width, table.address_bits});
  return {};
}

Status EditDecoder::decode_table_with_flags(Bytes body, VersionEdit* edit) const {
  CreatedTableWithFlags table{};
  if (body.size() <= sizeof table || body.size() > sizeof table + max_table_name_bytes) {
    return damaged("a table's name has the wrong size");
  }
  std::memcpy(&table, body.data(), sizeof table);
  TableRecord record{table.table.id, std::string(as_text(body.subspan(sizeof table))),
                     table.table.key_width, table.table.address_bits};
  if (!set_flags(table.flags, &record))
    return newer("unknown flags " + std::to_string(table.flags) + " of a table");
  edit->created.push_back(std::move(record));
  return {};
}

Status EditDecoder::decode_table_that_expires(Bytes body, VersionEdit* edit) const {
  CreatedTableThatExpires table{};
  if (body.size() <= sizeof table || body.size() > sizeof table + max_table_name_bytes) {
    return damaged("a table's name has the wrong size");
  }
  std::memcpy(&table, body.data(), sizeof table);
  TableRecord record{table.table.table.id, std::string(as_text(body.subspan(sizeof table))),
                     table.table.table.key_width, table.table.table.address_bits};
  if (!set_flags(table.table.flags, &record))
    return newer("unknown flags " + std::to_string(table.table.flags) + " of a table");
  if (table.unit >= std::size(expiry_units))
    return newer("unknown unit " + std::to_string(table.unit) + " of the ends of rows");
  if (table.time_to_live < 0) return damaged("rows of a table end before they are put");
  record.expiry = {table.offset, table.valid_bit, expiry_units[table.unit], table.time_to_live};
  edit->created.push_back(std::move(record));
  return {};
}

Status EditDecoder::decode_renamed_table(Bytes body, VersionEdit* edit) const {
  RenamedTable table;
  if (body.size() <= sizeof table.id || body.size() > sizeof table.id + max_table_name_bytes) {
    return damaged("a table's name has the wrong size");
  }
  std::memcpy(&table.id, body.data(), sizeof table.id);
  table.name = as_text(body.subspan(sizeof table.id));
  edit->renamed.push_back(std::move(table));
  return {};
}

Status EditDecoder::decode_segment(Bytes body, VersionEdit* edit) const {
  AddedSegment s{};
  STRIDE_TRY(whole(body, &s));
  edit->added.push_back({s.segment, s.table, s.run, s.rows, s.tombstones, s.bytes, {}});
  return {};
}

Status EditDecoder::decode_segment_that_expires(Bytes body, VersionEdit* edit) const {
  AddedSegmentThatExpires field{};
  STRIDE_TRY(whole(body, &field));
  const AddedSegment& s = field.segment;
  edit->added.push_back({s.segment,
                         s.table,
                         s.run,
                         s.rows,
                         s.tombstones,
                         s.bytes,
                         {},
                         {field.first_end, field.last_end}});
  return {};
}

Status EditDecoder::decode_log(Bytes body, VersionEdit* edit) const {
  CreatedLog log{};
  STRIDE_TRY(whole(body, &log));
  edit->created_logs.push_back({log.number, log.id});
  return {};
}

Status EditDecoder::decode_sealed_log(Bytes body, VersionEdit* edit) const {
  SealedLogField log{};
  STRIDE_TRY(whole(body, &log));
  edit->sealed_logs.push_back({log.number, log.run});
  return {};
}

Status EditDecoder::decode_erased_rows(Bytes body, VersionEdit* edit) const {
  ErasedRowsField erased{};
  STRIDE_TRY(whole(body, &erased));
  edit->erased.push_back({erased.segment, erased.table, {erased.first, erased.end}});
  return {};
}

}  // namespace

std::string manifest_name(uint64_t number) {
  return std::string(name_prefix) + file_number_text(number);
}

std::optional<uint64_t> manifest_number(std::string_view name) {
  if (!name.starts_with(name_prefix)) return std::nullopt;
  return parse_file_number(name.substr(name_prefix.size()));
}

std::string segment_name(uint64_t id) { return file_number_text(id) + std::string(segment_suffix); }

std::optional<uint64_t> segment_number(std::string_view name) {
  if (!name.ends_with(segment_suffix)) return std::nullopt;
  return parse_file_number(name.substr(0, name.size() - segment_suffix.size()));
}

std::string encode_current(uint64_t number) {
  std::string line = manifest_name(number) + "\n";
  return line + hex(checksum(as_bytes(line))) + "\n";
}

std::optional<uint64_t> decode_current(std::string_view text) {
  std::optional<uint64_t> number = manifest_number(text.substr(0, text.find('\n')));
  if (!number || encode_current(*number) != text) return std::nullopt;
  return number;
}

std::vector<std::byte> encode_manifest_header(uint64_t number, uint32_t identity) {
  ManifestHeader header{manifest_magic, database_format_version, identity, number, 0};
  std::vector<std::byte> out(sizeof header);
  std::memcpy(out.data(), &header, sizeof header);
  header.checksum = checksum(Bytes(out).first(offsetof(ManifestHeader, checksum)));
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

namespace {

Status check_name_size(const std::string& name) {
  if (!name.empty() && name.size() <= max_table_name_bytes) return {};
  return Status::invalid("a table's name has 1 to 255 bytes, not " + std::to_string(name.size()));
}

// Those that are renamed, and those that are created.
Status encode_tables(const VersionEdit& edit, EditEncoder* encoder) {
  for (const RenamedTable& t : edit.renamed) {
    STRIDE_TRY(check_name_size(t.name));
    encoder->field(EditTag::renamed_table, t.id, t.name);
  }
  for (const TableRecord& t : edit.created) {
    STRIDE_TRY(check_name_size(t.name));
    CreatedTable table{t.id, t.key_width, t.address_bits};
    const uint32_t flags = flags_of(t);
    if (t.expiry) {
      encoder->field(EditTag::created_table_that_expires,
                     with_expiry(CreatedTableWithFlags{table, flags}, *t.expiry), t.name);
    } else if (flags) {
      encoder->field(EditTag::created_table_with_flags, CreatedTableWithFlags{table, flags},
                     t.name);
    } else {
      encoder->field(EditTag::created_table, table, t.name);
    }
  }
  return {};
}

// Those that are added, and rows that are erased of these and of others.
void encode_segments(const VersionEdit& edit, EditEncoder* encoder) {
  for (const SegmentRecord& s : edit.added) {
    const AddedSegment added{s.segment, s.run, s.rows, s.tombstones, s.bytes, s.table, 0};
    if (s.expiry == ExpiryRange()) {
      encoder->field(EditTag::added_segment, added);
    } else {
      encoder->field(EditTag::added_segment_that_expires,
                     AddedSegmentThatExpires{added, s.expiry.first, s.expiry.last});
    }
  }
  auto erased = [&](uint64_t segment, uint32_t table, RowInterval rows) {
    encoder->field(EditTag::erased_rows, ErasedRowsField{segment, rows.first, rows.end, table, 0});
  };
  for (const SegmentRecord& s : edit.added)
    for (const RowInterval& rows : s.erased.list()) erased(s.segment, s.table, rows);
  for (const ErasedRows& e : edit.erased) erased(e.segment, e.table, e.rows);
}

}  // namespace

Result<std::vector<std::byte>> encode_record(const VersionEdit& edit, uint64_t synced_bytes,
                                             uint32_t kind) {
  EditEncoder encoder;
  ManifestRecordHeader header{0, 0, kind, synced_bytes};
  encoder.put(&header, sizeof header);
  if (edit.next_id != 0) encoder.field(EditTag::next_id, edit.next_id);
  for (uint64_t segment : edit.removed) encoder.field(EditTag::removed_segment, segment);
  for (uint32_t table : edit.dropped) encoder.field(EditTag::dropped_table, table);
  STRIDE_TRY(encode_tables(edit, &encoder));
  encode_segments(edit, &encoder);
  for (uint64_t log : edit.removed_logs) encoder.field(EditTag::removed_log, log);
  for (const LogRecord& log : edit.created_logs)
    encoder.field(EditTag::created_log, CreatedLog{log.number, log.id});
  for (const SealedLog& log : edit.sealed_logs)
    encoder.field(EditTag::sealed_log, SealedLogField{log.number, log.run});
  if (edit.synced_logs) encoder.field(EditTag::synced_logs, *edit.synced_logs);
  std::vector<std::byte>& out = encoder.out();
  uint64_t payload_bytes = out.size() - sizeof header;
  if (payload_bytes > std::numeric_limits<uint32_t>::max() - 8) {
    return Status::invalid("a version edit of more than 4 GiB");
  }
  header.payload_bytes = static_cast<uint32_t>(payload_bytes);
  out.resize(padded(out.size()));
  std::memcpy(out.data(), &header, sizeof header);
  header.checksum = checksum(Bytes(out).subspan(sizeof header.checksum));
  std::memcpy(out.data(), &header, sizeof header);
  return std::move(out);
}

std::optional<ManifestRecord> find_record(Bytes bytes) {
  ManifestRecord record{};
  constexpr size_t head = sizeof record.header;
  if (bytes.size() < head) return std::nullopt;
  std::memcpy(&record.header, bytes.data(), head);
  uint64_t payload = record.header.payload_bytes;
  record.record_bytes = head + padded(payload);
  if (record.record_bytes > bytes.size()) return std::nullopt;
  constexpr size_t skipped = sizeof record.header.checksum;
  Bytes covered = bytes.subspan(skipped, record.record_bytes - skipped);
  if (checksum(covered) != record.header.checksum) return std::nullopt;
  record.payload = bytes.subspan(head, payload);
  return record;
}

Result<VersionEdit> decode_edit(const ManifestRecord& record, const std::string& file,
                                uint64_t offset) {
  if (record.header.kind != manifest_edit && record.header.kind != manifest_unsynced_edit) {
    return Status(StatusCode::unsupported_version,
                  "unknown record kind " + std::to_string(record.header.kind))
        .with_file(file)
        .with_offset(offset)
        .with_remedy("open the database with a newer StrideDB");
  }
  // No record knows what comes after it: this one was written behind others that are not there.
  if (record.header.synced_bytes > offset)
    return Status::corruption(file, offset, "records before this one are missing in the manifest")
        .with_remedy("restore the database from a backup");
  VersionEdit edit;
  STRIDE_TRY(EditDecoder(record.payload, file, offset).run(&edit));
  return edit;
}

}  // namespace stride
