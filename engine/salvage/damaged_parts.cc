#include "engine/salvage/damaged_parts.h"

#include <optional>
#include <utility>

#include "engine/salvage.h"
#include "storage/log_format.h"
#include "storage/quoted.h"

namespace stride {
namespace {

constexpr const char* remedy =
    "restore the file from a backup, or see what stride salvage recovers";

std::optional<std::string> text_of(const std::optional<Bytes>& key) {
  if (!key) return std::nullopt;
  return std::string(as_text(*key));
}

// "812 rows from 'ant' to 'bee'"
std::string rows_text(uint64_t rows, const std::optional<std::string>& first,
                      const std::optional<std::string>& last) {
  std::string text = rows == 0 ? "rows" : std::to_string(rows) + (rows == 1 ? " row" : " rows");
  if (!first && !last) return text + " of any key";
  if (first) text += " from " + in_quotes(as_bytes(*first));
  if (last) text += (first ? " to " : " up to ") + in_quotes(as_bytes(*last));
  return text;
}

}  // namespace

std::string Damage::to_string() const {
  std::string text = file + ": " + section;
  if (bytes > 0) text += " at " + std::to_string(offset) + ", " + std::to_string(bytes) + " bytes";
  text += ": " + what;
  if (!table.empty()) text += "; table " + in_quotes(table);
  if (rows > 0) text += (table.empty() ? "; " : ", ") + rows_text(rows, first_key, last_key);
  return text;
}

std::string LostRows::to_string() const {
  std::string text = table.empty() ? "of any table" : "table " + in_quotes(table);
  text += ": " + rows_text(rows, first_key, last_key) + " (" + file + ": " + why + ")";
  return older_rows_remain ? text + "; older rows of these keys may be there again" : text;
}

void add_damage(const SegmentSurvey& survey, const std::string& table,
                std::vector<Damage>* damage) {
  for (const DamagedBytes& part : survey.damage()) {
    Damage d{.file = survey.path(),
             .section = part.section,
             .offset = part.offset,
             .bytes = part.bytes,
             .what = part.what,
             .table = table,
             .rows = part.rows.end - part.rows.first};
    std::optional<Bytes> from, to;
    survey.find_bounds(part.rows, &from, &to);
    d.first_key = text_of(from);
    d.last_key = text_of(to);
    damage->push_back(std::move(d));
  }
}

Damage damage_of_file(const Status& why, const std::string& file, const std::string& table,
                      uint64_t rows) {
  const bool is_missing = why.code() == StatusCode::not_found;
  return {.file = file,
          .section = "file",
          .what = is_missing ? "the file is missing" : why.message(),
          .table = table,
          .rows = rows,
          .first_key = {},
          .last_key = {},
          .code = is_missing || why.code() == StatusCode::invalid_argument ? StatusCode::corruption
                                                                           : why.code()};
}

Damage damage_of_manifest(const Status& why) {
  const bool is_current = why.file().ends_with("CURRENT");
  Damage d{.file = why.file(), .section = is_current ? "CURRENT" : "manifest"};
  d.offset = why.offset().value_or(0);
  d.what = why.message();
  d.code = why.code();
  return d;
}

void add_damage(const LogSurvey& survey, const std::string& file, std::vector<Damage>* damage) {
  for (const FileRange& range : survey.damage) {
    const bool is_header = range.offset < sizeof(LogHeader);
    Damage d{.file = file, .section = is_header ? "log header" : "log frames"};
    d.offset = range.offset;
    d.bytes = range.bytes;
    d.what = is_header ? "the log's header is damaged" : "frames of the log are damaged";
    damage->push_back(std::move(d));
  }
}

Status first_of(const std::vector<Damage>& damage) {
  if (damage.empty()) return {};
  const Damage& d = damage.front();
  std::string more =
      damage.size() == 1 ? "" : " (and " + std::to_string(damage.size() - 1) + " more)";
  return Status(d.code, d.section + ": " + d.what + more)
      .with_file(d.file)
      .with_offset(d.offset)
      .with_remedy(remedy);
}

}  // namespace stride
