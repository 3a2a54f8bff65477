// WriteTransaction::adopt(): finds the segments of other databases. The commit copies them
// (engine/write/adopted_segments.h).
#include <algorithm>
#include <utility>
#include <vector>

#include "engine/catalog/table_options.h"
#include "engine/memtable/memtable.h"
#include "engine/shared_database.h"
#include "engine/table_schema.h"
#include "engine/transaction_state.h"
#include "engine/write/adopted_segments.h"
#include "engine/write_transaction.h"
#include "storage/no_throw.h"

namespace stride {
namespace {

constexpr const char* compact_first = "call compact() on it and close it first";

Result<std::shared_ptr<DatabaseImpl>> open_source(const std::string& path,
                                                  const DatabaseContext& target) {
  if (is_same_directory(path, target.path, target.options.file_system))
    return Status::invalid("a database cannot adopt rows of its own")
        .with_file(path)
        .with_remedy("name other databases");
  Options options{.create_if_missing = false, .read_only = true};
  options.memory_limit_bytes = target.options.memory_limit_bytes;
  options.shared_backend = target.backend;
  options.file_system = target.options.file_system;
  options.clock = target.options.clock;
  return DatabaseImpl::open(path, options);
}

Status check_same_table(const Table& source, const Table& target) {
  TableOptions options{.key_width = target.address_bits() ? 0 : target.key_width(),
                       .address_bits = target.address_bits(),
                       .share_equal_values = target.share_equal_values(),
                       .numbers = target.numbers(),
                       .overflow = target.overflow(),
                       .schema = target.schema()};
  options.expiry_column = target.expiry_column();
  options.time_to_live = target.time_to_live();
  STRIDE_TRY(check_same_options(source, options).status());
  if (source.schema() == target.schema()) return {};
  return Status::invalid("table '" + source.name() + "' has the schema " +
                         source.schema().to_string() + ", and the one that adopts it has none");
}

bool has_rows_in_memory(const Version& version, uint32_t table) {
  if (version.memtable && version.memtable->find(table)) return true;
  return std::any_of(version.sealed.begin(), version.sealed.end(),
                     [&](const SealedMemtable& s) { return s.rows->find(table) != nullptr; });
}

Status not_whole(const std::string& table, const char* what) {
  return Status::invalid("table '" + table + "' has " + what + ", which cannot be adopted")
      .with_remedy(compact_first);
}

// The segments of the source's table of that name.
Status find_segments(const DatabaseImpl& source, const Table& target,
                     std::vector<AdoptedSegment>* found) {
  auto there = source.open_table(target.name());
  if (!there.ok()) return there.status();
  STRIDE_TRY(check_same_table(*there, target));
  const std::shared_ptr<const Version> version = source.current();
  auto table = version->find(*there);
  if (!table.ok()) return table.status();
  if (has_rows_in_memory(*version, there->id()))
    return not_whole(target.name(), "rows in the write-ahead log");
  for (const auto& segment : (*table)->segments) {
    STRIDE_TRY(segment->open_failure());
    if (segment->record().tombstones > 0) return not_whole(target.name(), "tombstones");
    if (!segment->record().erased.empty()) return not_whole(target.name(), "erased rows");
    found->push_back({version, segment});
  }
  return {};
}

// What went wrong, with the database that it was looked for in.
Status told_of(const std::string& path, Status s) {
  return s.ok() || !s.file().empty() ? s : std::move(s).with_file(path);
}

}  // namespace

Status WriteTransaction::adopt(const Table& table, std::span<const std::string> databases) {
  return no_throw([&] {
    if (!state_) return absent();
    STRIDE_TRY(state_->begin_change(table));
    if (table.name() == notes_table_name)
      return Status::invalid("'" + table.name() +
                             "' is where schemas are kept, of this database's "
                             "tables alone")
          .with_remedy("adopt the rows of other tables");
    std::vector<AdoptedSegment> found;
    for (const std::string& path : databases) {
      auto source = open_source(path, state_->database->context());
      if (!source.ok()) return source.status();
      Status s = no_throw([&] { return find_segments(**source, table, &found); });
      // Its files stay: what was found keeps them.
      Status closed = no_throw([&] { return (*source)->close(); });
      STRIDE_TRY(told_of(path, std::move(s)));
    }
    STRIDE_TRY(state_->staging.adopt(TableParts::record(table), std::move(found)));
    state_->end_change();
    return Status();
  });
}

}  // namespace stride
