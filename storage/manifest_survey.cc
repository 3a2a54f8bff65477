#include "storage/manifest_survey.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "storage/checksum.h"
#include "storage/current_file.h"
#include "storage/manifest_format.h"
#include "storage/manifest_replay.h"
#include "storage/partial_file.h"

namespace stride {
namespace {

constexpr const char* remedy = "stride salvage makes a new database of what is left";

Status damaged(const std::string& file, uint64_t offset, const char* what) {
  return Status::corruption(file, offset, what).with_remedy(remedy);
}

struct SurveyedEdit {
  VersionEdit edit;
  uint64_t offset = 0;
  bool is_synced = true;
};

// Replays edits of which some are missing in between: of each, what fits.
class LooseReplay {
 public:
  // False: not all of it did.
  bool apply(VersionEdit edit) {
    if (replay_.apply(edit).ok()) return true;
    const ManifestState before = replay_.state();
    fit_segments(before, &edit);
    fit_tables(before, &edit);
    fit_logs(before, &edit);
    if (replay_.apply(edit).ok()) return false;
    // Erased rows or seals that fit nothing any more.
    edit.erased.clear();
    edit.sealed_logs.clear();
    if (replay_.apply(edit).ok()) return false;
    edit.renamed.clear();
    Status ignored = replay_.apply(edit);
    return false;
  }
  ManifestState state() const { return replay_.state(); }
  const std::unordered_set<uint32_t>& nameless_tables() const { return nameless_; }

 private:
  static void fit_segments(const ManifestState& before, VersionEdit* edit) {
    std::unordered_set<uint64_t> there;
    for (const SegmentRecord& s : before.segments) there.insert(s.segment);
    std::erase_if(edit->removed, [&](uint64_t id) { return !there.contains(id); });
    for (uint64_t id : edit->removed) there.erase(id);
    std::erase_if(edit->added,
                  [&](const SegmentRecord& s) { return !there.insert(s.segment).second; });
    std::erase_if(edit->erased, [&](const ErasedRows& e) { return !there.contains(e.segment); });
  }

  void fit_tables(const ManifestState& before, VersionEdit* edit) {
    std::map<uint32_t, std::string> tables;
    std::unordered_set<std::string> names;
    for (const TableRecord& t : before.tables) tables[t.id] = t.name;
    std::erase_if(edit->dropped, [&](uint32_t id) { return !tables.contains(id); });
    for (uint32_t id : edit->dropped) tables.erase(id);
    std::erase_if(edit->renamed, [&](const RenamedTable& t) { return !tables.contains(t.id); });
    for (const RenamedTable& t : edit->renamed) tables[t.id] = t.name;
    for (const auto& [id, name] : tables) names.insert(name);
    std::erase_if(edit->created, [&](const TableRecord& t) {
      return tables.contains(t.id) || t.name.empty() || t.id == 0;
    });
    for (TableRecord& t : edit->created) {
      while (!names.insert(t.name).second) t.name += "-" + std::to_string(t.id);
      tables[t.id] = t.name;
    }
    for (const SegmentRecord& s : edit->added) {
      if (s.table == 0 || tables.contains(s.table)) continue;
      TableRecord table{.id = s.table, .name = "table-" + std::to_string(s.table)};
      while (!names.insert(table.name).second) table.name += "-unnamed";
      tables[table.id] = table.name;
      nameless_.insert(table.id);
      edit->created.push_back(std::move(table));
    }
    std::erase_if(edit->added, [](const SegmentRecord& s) { return s.table == 0; });
  }

  static void fit_logs(const ManifestState& before, VersionEdit* edit) {
    std::map<uint64_t, uint64_t> logs;  // runs by number
    for (const LogRecord& log : before.logs) logs[log.number] = log.run;
    std::erase_if(edit->removed_logs, [&](uint64_t number) { return logs.erase(number) == 0; });
    std::erase_if(edit->created_logs, [&](const LogRecord& log) {
      const bool is_newest = logs.empty() || log.number > logs.rbegin()->first;
      if (is_newest) logs[log.number] = 0;
      return !is_newest;
    });
    std::erase_if(edit->sealed_logs, [&](const SealedLog& log) {
      return !logs.contains(log.number) || logs[log.number] != 0;
    });
  }

  ManifestReplay replay_;
  std::unordered_set<uint32_t> nameless_;
};

class ManifestScan {
 public:
  ManifestScan(std::string path, uint64_t number, Bytes bytes)
      : path_(std::move(path)), number_(number), bytes_(bytes) {}

  // unsupported_version, where a newer StrideDB has written it.
  Status run() {
    STRIDE_TRY(check_header());
    uint64_t budget = 16 * bytes_.size();  // of bytes that are read in vain, where it is damaged
    uint64_t end = sizeof(ManifestHeader);
    for (uint64_t at = end; at + sizeof(ManifestRecordHeader) <= bytes_.size();) {
      ManifestRecordHeader head;
      std::memcpy(&head, bytes_.data() + at, sizeof head);
      const uint64_t read = sizeof head + uint64_t{head.payload_bytes};
      std::optional<ManifestRecord> record;
      if (read <= bytes_.size() - at && read <= budget) record = find_record(bytes_.subspan(at));
      if (!record) {
        if (read <= bytes_.size() - at) budget -= std::min(budget, read);
        at += 8;
        continue;
      }
      auto edit = decode_edit(*record, path_, at);
      if (edit.status().code() == StatusCode::unsupported_version) return edit.status();
      if (end < at) damage_.push_back(damaged(path_, end, "a record of the manifest is damaged"));
      if (edit.ok()) {
        edits_.push_back({std::move(*edit), at, record->header.kind == manifest_edit});
      } else {
        damage_.push_back(edit.status());
      }
      at += record->record_bytes;
      end = at;
    }
    end_ = end;
    return {};
  }
  const std::vector<SurveyedEdit>& edits() const { return edits_; }
  std::vector<Status>& damage() { return damage_; }
  const std::string& path() const { return path_; }
  // What follows the last record: nothing that is one.
  bool has_tail() const { return end_ < bytes_.size(); }
  uint64_t end() const { return end_; }

 private:
  Status check_header() {
    ManifestHeader header{};
    if (bytes_.size() < sizeof header) {
      damage_.push_back(damaged(path_, bytes_.size(), "the manifest is cut off within its header"));
      return {};
    }
    std::memcpy(&header, bytes_.data(), sizeof header);
    if (header.magic != manifest_magic ||
        checksum(bytes_.first(offsetof(ManifestHeader, checksum))) != header.checksum) {
      damage_.push_back(damaged(path_, 0, "the manifest's header is damaged"));
      return {};
    }
    if (header.database_format_version > database_format_version)
      return Status(StatusCode::unsupported_version,
                    "database format version " + std::to_string(header.database_format_version) +
                        " is newer than " + std::to_string(database_format_version))
          .with_file(path_)
          .with_remedy("use a newer StrideDB");
    if (header.number != number_)
      damage_.push_back(damaged(path_, 0, "the file holds another manifest"));
    return {};
  }

  const std::string path_;
  const uint64_t number_;
  const Bytes bytes_;
  std::vector<SurveyedEdit> edits_;
  std::vector<Status> damage_;
  uint64_t end_ = 0;
};

void apply(ManifestScan* scan, const std::function<bool(const VersionEdit&)>& has_files,
           ManifestSurvey* survey) {
  const std::vector<SurveyedEdit>& edits = scan->edits();
  size_t synced = edits.size();
  while (synced > 0 && !edits[synced - 1].is_synced) --synced;
  LooseReplay replay;
  for (size_t i = 0; i < edits.size(); ++i) {
    const VersionEdit& edit = edits[i].edit;
    for (const SegmentRecord& s : edit.added) survey->named_segments.insert(s.segment);
    for (uint64_t id : edit.removed) survey->named_segments.insert(id);
    for (uint32_t id : edit.dropped) survey->dropped_tables.insert(id);
    for (const LogRecord& log : edit.created_logs) survey->named_logs.insert(log.number);
    for (uint64_t number : edit.removed_logs) survey->named_logs.insert(number);
    if (i >= synced && !has_files(edit)) break;
    if (!replay.apply(edit) && scan->damage().empty())
      scan->damage().push_back(
          damaged(scan->path(), edits[i].offset, "an edit of the manifest fits none before it"));
  }
  survey->state = replay.state();
  survey->nameless_tables = replay.nameless_tables();
}

// The number that CURRENT names; nothing, and why, where that is not known.
std::optional<uint64_t> current_number(FileSystem& fs, const std::string& directory,
                                       std::vector<Status>* damage) {
  const std::string path = directory + "/CURRENT";
  auto text = read_file(fs, path, 256);
  if (text.ok())
    if (auto number = decode_current(*text)) return number;
  damage->push_back(text.status().code() == StatusCode::not_found
                        ? damaged(path, 0, "CURRENT is missing")
                        : damaged(path, 0, "CURRENT is damaged"));
  return std::nullopt;
}

}  // namespace

Result<ManifestSurvey> survey_manifest(FileSystem& fs, const std::string& directory,
                                       const std::function<bool(const VersionEdit&)>& has_files) {
  auto names = fs.list(directory);
  if (!names.ok()) return names.status();
  ManifestSurvey survey;
  std::vector<uint64_t> numbers;  // that CURRENT names first, then the newest
  for (const std::string& name : *names)
    if (auto number = manifest_number(name)) numbers.push_back(*number);
  std::sort(numbers.rbegin(), numbers.rend());
  const auto current = current_number(fs, directory, &survey.damage);
  if (current) {
    auto found = std::find(numbers.begin(), numbers.end(), *current);
    if (found == numbers.end()) {
      survey.damage.push_back(damaged(directory + "/" + manifest_name(*current), 0,
                                      "the manifest that CURRENT names is missing"));
    } else {
      std::rotate(numbers.begin(), found, found + 1);
    }
  }
  for (const uint64_t number : numbers) {
    const std::string path = directory + "/" + manifest_name(number);
    auto bytes = read_what_can_be_read(fs, path);
    if (bytes.status().code() == StatusCode::permission_denied) return bytes.status();
    if (!bytes.ok()) {
      survey.damage.push_back(bytes.status());
      continue;
    }
    ManifestScan scan(path, number, as_bytes(*bytes));
    STRIDE_TRY(scan.run());
    if (!scan.edits().empty()) {
      survey.is_found = true;
      apply(&scan, has_files, &survey);
    }
    if (scan.has_tail() && survey.is_found)
      scan.damage().push_back(damaged(
          path, scan.end(),
          "the manifest ends with what is no record: a commit that had not returned, or damage"));
    survey.damage.insert(survey.damage.end(), scan.damage().begin(), scan.damage().end());
    if (survey.is_found) {
      survey.is_whole = scan.damage().empty() && number == (current ? *current : numbers.front());
      break;
    }
  }
  return survey;
}

}  // namespace stride
