#include "storage/manifest.h"

#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "storage/checksum.h"
#include "storage/current_file.h"
#include "storage/manifest_format.h"
#include "storage/manifest_replay.h"
#include "storage/no_throw.h"

namespace stride {

namespace {

constexpr uint64_t rewrite_above_bytes = 1 << 20;
constexpr uint64_t rewrite_above_ratio = 4;  // of the log's size to that of its content
constexpr int read_only_attempts = 10;

VersionEdit snapshot_of(const ManifestState& state) {
  VersionEdit edit;
  edit.created = state.tables;
  edit.added = state.segments;
  edit.created_logs = state.logs;
  for (const LogRecord& log : state.logs)
    if (log.run != 0) edit.sealed_logs.push_back({log.number, log.run});
  if (state.synced_logs != 0) edit.synced_logs = state.synced_logs;
  edit.next_id = state.next_id;
  return edit;
}

std::string path_of(const std::string& directory, uint64_t number) {
  return directory + "/" + manifest_name(number);
}

// What a manifest file says, and how far it can be trusted.
struct Replay {
  uint32_t identity = 0;
  ManifestState state;
  std::vector<UnsyncedEdit> unsynced;  // not in state
  uint64_t end = 0;                    // what follows is a torn tail
};

Status check_header(const std::string& path, uint64_t number, Bytes bytes, uint32_t* identity) {
  ManifestHeader header{};
  constexpr const char* remedy = "restore the database from a backup";
  if (bytes.size() < sizeof header) {
    return Status::corruption(path, bytes.size(), "the manifest is cut off within its header")
        .with_remedy(remedy);
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != manifest_magic ||
      checksum(bytes.first(offsetof(ManifestHeader, checksum))) != header.checksum) {
    return Status::corruption(path, 0, "the manifest's header is damaged").with_remedy(remedy);
  }
  if (header.database_format_version > database_format_version) {
    return Status(StatusCode::unsupported_version,
                  "database format version " + std::to_string(header.database_format_version) +
                      " is newer than " + std::to_string(database_format_version))
        .with_file(path)
        .with_remedy("open the database with a newer StrideDB");
  }
  if (header.number != number) {
    return Status::corruption(path, 0, "the file holds another manifest").with_remedy(remedy);
  }
  *identity = header.identity;
  return {};
}

// Whether what begins at `end` can be what a power loss left of writes that were not synced: no
// later record may know it as synced. What is left may hold the heads of records that are not
// whole, but not so many, of such sizes, that checking them all would take long.
bool is_torn_tail(Bytes bytes, uint64_t end) {
  constexpr uint64_t max_reads = 16;  // of each byte
  uint64_t budget = max_reads * (bytes.size() - end);
  ManifestRecordHeader header;
  for (uint64_t at = end + 8; at + sizeof header <= bytes.size(); at += 8) {
    std::memcpy(&header, bytes.data() + at, sizeof header);
    // No record knows what comes after it.
    bool tells = header.synced_bytes > end && header.synced_bytes <= at &&
                 header.payload_bytes <= bytes.size() - at - sizeof header;
    if (!tells) continue;
    uint64_t record_bytes = sizeof header + header.payload_bytes;
    if (record_bytes > budget || find_record(bytes.subspan(at))) return false;
    budget -= record_bytes;
  }
  return true;
}

Result<Replay> replay(const std::string& path, uint64_t number, Bytes bytes) {
  Replay result;
  STRIDE_TRY(check_header(path, number, bytes, &result.identity));
  ManifestReplay replayed;
  result.end = sizeof(ManifestHeader);
  while (std::optional<ManifestRecord> record = find_record(bytes.subspan(result.end))) {
    Result<VersionEdit> edit = decode_edit(*record, path, result.end);
    if (!edit.ok()) return edit.status();
    result.unsynced.push_back({std::move(*edit), result.end});
    result.end += record->record_bytes;
    if (record->header.kind != manifest_edit) continue;
    for (const UnsyncedEdit& unsynced : result.unsynced) {
      if (Status s = replayed.apply(unsynced.edit); !s.ok()) {
        return std::move(s).with_file(path).with_offset(unsynced.offset);
      }
    }
    result.unsynced.clear();
  }
  result.state = replayed.state();
  if (!is_torn_tail(bytes, result.end)) {
    return Status::corruption(path, result.end, "a record of the manifest is damaged")
        .with_remedy("restore the database from a backup");
  }
  return result;
}

// The number of the manifest with what it says, for a database that another process may be writing:
// the file that CURRENT named may be gone, or be cut off, by the time that it is read.
struct Found {
  uint64_t number = 0;
  std::string bytes;  // of the file
  Replay replay;
};

// `*number` becomes the one that CURRENT names, or 0 where that cannot be told.
Result<Found> find(FileSystem& fs, const std::string& directory, uint64_t* number) {
  *number = 0;
  Result<uint64_t> current = read_current(fs, directory);
  if (!current.ok()) return current.status();
  *number = *current;
  std::string path = path_of(directory, *number);
  Result<std::string> bytes = read_file(fs, path);
  if (!bytes.ok() && bytes.status().code() == StatusCode::not_found) {
    return Status(StatusCode::corruption, "the manifest that CURRENT names is missing")
        .with_file(path)
        .with_remedy("restore the database from a backup");
  }
  if (!bytes.ok()) return bytes.status();
  Result<Replay> replayed = replay(path, *number, as_bytes(*bytes));
  if (!replayed.ok()) return replayed.status();
  return Found{*number, std::move(*bytes), std::move(*replayed)};
}

// A writer that replaces manifests faster than this thread reads them has done no harm, however
// often that happens: only attempts that meet the same manifest are counted.
Result<Found> find_while_written(FileSystem& fs, const std::string& directory) {
  uint64_t last = 0;
  for (int attempt = 1;; ++attempt) {
    uint64_t number = 0;
    Result<Found> found = find(fs, directory, &number);
    bool again = !found.ok() && found.status().code() == StatusCode::corruption;
    if (number != last) attempt = 1;
    last = number;
    if (!again || attempt == read_only_attempts) return found;
  }
}

void remove_leftovers(FileSystem& fs, const std::string& directory, uint64_t keep) {
  Result<std::vector<std::string>> names = fs.list(directory);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    std::optional<uint64_t> number = manifest_number(name);
    bool leftover = number ? *number != keep : name == "CURRENT.tmp" || name == unfinished_name;
    // They do no harm: it is tried again when the database is next opened.
    if (leftover) (void)fs.remove(directory + "/" + name);
  }
}

// Puts all that was read on stable storage and cuts off the rest, before anything is built on it.
// The bytes are written again because a sync that failed in an earlier process can have left the
// kernel with a copy that it shows to readers, takes for written and will never write.
Status make_durable(File& file, const Found& found) {
  uint64_t end = found.replay.end;
  STRIDE_TRY(file.write_at(0, as_bytes(found.bytes).first(end)));
  if (found.bytes.size() > end) STRIDE_TRY(file.truncate(end));
  return file.sync();
}

// A new manifest file, synced together with its directory entry: CURRENT must not name a file that
// a power loss takes.
struct NewFile {
  std::unique_ptr<File> file;
  uint64_t bytes = 0;
};

Result<NewFile> write_new_file(FileSystem& fs, const std::string& directory, uint64_t number,
                               const std::vector<std::byte>& bytes) {
  std::string path = path_of(directory, number);
  Result<std::unique_ptr<File>> file = fs.open(path, OpenMode::create);
  if (!file.ok()) return file.status();
  Status status = (*file)->write_at(0, bytes);
  if (status.ok()) status = (*file)->sync();
  if (status.ok()) status = fs.sync_directory(directory);
  if (!status.ok()) {
    (void)fs.remove(path);
    return status;
  }
  return NewFile{std::move(*file), bytes.size()};
}

}  // namespace

Result<std::vector<std::byte>> encode_manifest(uint64_t number, uint32_t identity,
                                               const ManifestState& state) {
  std::vector<std::byte> bytes = encode_manifest_header(number, identity);
  Result<std::vector<std::byte>> record = encode_record(snapshot_of(state), 0);
  if (!record.ok()) return record.status();
  bytes.insert(bytes.end(), record->begin(), record->end());
  return bytes;
}

uint32_t draw_identity() {
  uint32_t drawn = 0;
  if (getrandom(&drawn, sizeof drawn, 0) != static_cast<ssize_t>(sizeof drawn)) return 0;
  return std::max(drawn, 1U);
}

struct Manifest::State {
  State(FileSystem& file_system, const std::string& database, uint64_t log_number)
      : fs(file_system), directory(database), number(log_number) {}

  FileSystem& fs;
  const std::string directory;
  uint64_t number;
  uint32_t identity = 0;
  std::unique_ptr<File> file;
  uint64_t end = 0;     // of the log
  uint64_t synced = 0;  // so much of it is on stable storage
  uint64_t rewrite_above = rewrite_above_bytes;
  bool poisoned = false;

  Status sync();
  Status usable() const {
    if (!poisoned) return {};
    return Status(StatusCode::poisoned, "an earlier failure left the manifest in an unknown state")
        .with_file(file->path())
        .with_remedy("close the database, see to the disk, and open it again");
  }
};

Manifest::Manifest(std::unique_ptr<State> state) : state_(std::move(state)) {}
Manifest::~Manifest() = default;

bool Manifest::poisoned() const { return state_->poisoned; }
uint64_t Manifest::bytes() const { return state_->end; }
ManifestPosition Manifest::position() const { return {state_->number, state_->end}; }
uint32_t Manifest::identity() const { return state_->identity; }
const std::string& Manifest::path() const { return state_->file->path(); }

Status Manifest::append(const VersionEdit& edit, bool sync) {
  State& s = *state_;
  STRIDE_TRY(s.usable());
  Result<std::vector<std::byte>> record =
      encode_record(edit, s.synced, sync ? manifest_edit : manifest_unsynced_edit);
  if (!record.ok()) return record.status();
  if (Status status = no_throw([&] { return s.file->write_at(s.end, *record); }); !status.ok()) {
    s.poisoned = !no_throw([&] { return s.file->truncate(s.end); }).ok();
    return status;
  }
  s.end += record->size();
  return sync ? s.sync() : Status();
}

Status Manifest::State::sync() {
  Status status = no_throw([&] { return file->sync(); });
  if (status.ok()) {
    synced = end;
    return status;
  }
  poisoned = true;
  return Status(StatusCode::io_error, "what was committed last may be lost: " + status.message())
      .with_file(file->path())
      .with_remedy("close the database, see to the disk, and open it again");
}

bool Manifest::may_have_grown() const { return state_->end > state_->rewrite_above; }

Status Manifest::rewrite_grown(const ManifestState& content) {
  State& s = *state_;
  STRIDE_TRY(s.usable());
  if (!may_have_grown()) return {};
  const uint32_t identity = s.identity ? s.identity : draw_identity();
  Result<std::vector<std::byte>> bytes = encode_manifest(s.number + 1, identity, content);
  if (!bytes.ok()) return bytes.status();
  const uint64_t rewrite_above = std::max(rewrite_above_bytes, rewrite_above_ratio * bytes->size());
  s.rewrite_above = rewrite_above;
  if (s.end <= s.rewrite_above) return {};
  s.rewrite_above = s.end + rewrite_above_bytes;  // until it is tried again, should it fail
  (void)s.fs.remove(path_of(s.directory, s.number + 1));
  Result<NewFile> made = write_new_file(s.fs, s.directory, s.number + 1, *bytes);
  if (!made.ok()) return made.status();
  FileChange change;
  Status thrown = no_throw([&] {
    change = write_current(s.fs, s.directory, s.number + 1);
    return Status();
  });
  if (!thrown.ok()) change = {thrown, /*unchanged=*/false};
  if (!change.status.ok()) {
    s.poisoned = !change.unchanged;
    if (change.unchanged) (void)s.fs.remove(path_of(s.directory, s.number + 1));
    return change.status;
  }
  // Where it can't be removed, that is tried again when the database is next opened.
  (void)s.fs.remove(path_of(s.directory, s.number));
  ++s.number;
  s.identity = identity;
  s.file = std::move(made->file);
  s.end = s.synced = made->bytes;
  s.rewrite_above = rewrite_above;
  return {};
}

Status Manifest::cut(uint64_t offset) {
  State& s = *state_;
  STRIDE_TRY(s.usable());
  STRIDE_TRY(s.file->truncate(offset));
  s.end = offset;
  return s.sync();
}

Result<Manifest::Recovered> Manifest::create(FileSystem& fs, const std::string& directory,
                                             uint32_t identity) {
  constexpr uint64_t number = 1;
  remove_leftovers(fs, directory, 0);
  std::vector<std::byte> bytes = encode_manifest_header(number, identity);
  Result<std::vector<std::byte>> record = encode_record(VersionEdit{}, 0);
  if (!record.ok()) return record.status();
  bytes.insert(bytes.end(), record->begin(), record->end());
  Result<NewFile> made = write_new_file(fs, directory, number, bytes);
  if (!made.ok()) return made.status();
  FileChange change = write_current(fs, directory, number);
  if (!change.status.ok()) {
    if (change.unchanged) (void)fs.remove(path_of(directory, number));
    return change.status;
  }
  auto state = std::make_unique<State>(fs, directory, number);
  state->identity = identity;
  state->file = std::move(made->file);
  state->end = state->synced = made->bytes;
  std::unique_ptr<Manifest> manifest(new Manifest(std::move(state)));
  const ManifestPosition end = manifest->position();
  return Recovered{std::move(manifest), ManifestState{}, {}, identity, end};
}

Result<Manifest::Recovered> Manifest::recover(FileSystem& fs, const std::string& directory,
                                              bool read_only) {
  uint64_t current = 0;
  Result<Found> found =
      read_only ? find_while_written(fs, directory) : find(fs, directory, &current);
  if (!found.ok()) return found.status();
  ManifestState& content = found->replay.state;
  std::vector<UnsyncedEdit>& unsynced = found->replay.unsynced;
  if (read_only)
    return Recovered{nullptr,
                     std::move(content),
                     std::move(unsynced),
                     found->replay.identity,
                     {found->number, found->replay.end}};

  auto state = std::make_unique<State>(fs, directory, found->number);
  Result<std::unique_ptr<File>> file = fs.open(path_of(directory, found->number), OpenMode::write);
  if (!file.ok()) return file.status();
  state->identity = found->replay.identity;
  state->file = std::move(*file);
  STRIDE_TRY(make_durable(*state->file, *found));
  state->end = state->synced = found->replay.end;
  std::unique_ptr<Manifest> manifest(new Manifest(std::move(state)));
  // A disk too full for it is no reason not to open the database.
  Status s = unsynced.empty() ? manifest->rewrite_grown(content) : Status();
  if (manifest->poisoned()) return s;
  remove_leftovers(fs, directory, manifest->state_->number);
  const uint32_t identity = manifest->identity();
  const ManifestPosition end = manifest->position();
  return Recovered{std::move(manifest), std::move(content), std::move(unsynced), identity, end};
}

}  // namespace stride
