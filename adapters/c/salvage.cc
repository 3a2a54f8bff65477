// All damage of a database, and a new one of what is left.
#include "engine/salvage.h"

#include <string>

#include "adapters/c/copy_options.h"
#include "adapters/c/error.h"
#include "adapters/c/objects.h"
#include "adapters/c/stridedb_salvage.h"

using namespace stride;
using namespace stride::c;

static_assert(sizeof(stride_damage) == 120 && sizeof(stride_salvage_report) == 88);

namespace {

void set_key(const std::optional<std::string>& key, int* has, stride_bytes* bytes) {
  *has = key.has_value();
  if (key) *bytes = {key->data(), key->size()};
}

stride_damage to_c(const Damage& d, const std::string& text) {
  stride_damage out{};
  out.size = sizeof out;
  out.text = text.c_str();
  out.file = d.file.c_str();
  out.section = d.section.c_str();
  out.offset = d.offset;
  out.bytes = d.bytes;
  out.what = d.what.c_str();
  out.table = d.table.c_str();
  out.rows = d.rows;
  set_key(d.first_key, &out.has_first_key, &out.first_key);
  set_key(d.last_key, &out.has_last_key, &out.last_key);
  out.status = static_cast<int>(d.code);
  return out;
}

stride_damage to_c(const LostRows& lost, const std::string& text) {
  stride_damage out{};
  out.size = sizeof out;
  out.text = text.c_str();
  out.file = lost.file.c_str();
  out.section = "";
  out.what = lost.why.c_str();
  out.table = lost.table.c_str();
  out.rows = lost.rows;
  set_key(lost.first_key, &out.has_first_key, &out.first_key);
  set_key(lost.last_key, &out.has_last_key, &out.last_key);
  out.status = STRIDE_CORRUPTION;
  out.older_rows_remain = lost.older_rows_remain;
  return out;
}

template <class List>
void tell(const List& list, stride_damage_callback each, void* context) {
  for (const auto& item : list) {
    const std::string text = item.to_string();
    const stride_damage told = to_c(item, text);
    if (each(&told, context) == 0) return;
  }
}

stride_salvage_report to_c(const SalvageReport& report) {
  stride_salvage_report out{};
  out.size = sizeof out;
  out.complete = report.is_complete();
  out.files = report.files;
  out.bytes = report.bytes;
  out.rebuilt_files = report.rebuilt_files;
  out.tables = report.tables.size();
  for (const SalvagedTable& table : report.tables) {
    out.unnamed_tables += table.is_unnamed;
    out.rows += table.rows;
  }
  out.lost_ranges = report.lost.size();
  for (const LostRows& lost : report.lost) out.lost_rows += lost.rows;
  out.uncertain = report.uncertain.size();
  return out;
}

}  // namespace

int stride_verify_each(stride_database* database, stride_damage_callback each, void* context) {
  return run([&] {
    Use<DatabaseObject> db;
    STRIDE_TRY(db.begin(database));
    STRIDE_TRY(check_pointer(reinterpret_cast<const void*>(each), "each"));
    VerifyReport report;
    Status s = db->database->verify(&report);
    tell(report.damage, each, context);
    return s;
  });
}

int stride_verify_files(const char* directory, stride_damage_callback each, void* context) {
  return run([&] {
    STRIDE_TRY(check_pointer(directory, "directory"));
    STRIDE_TRY(check_pointer(reinterpret_cast<const void*>(each), "each"));
    VerifyReport report;
    Status s = verify_files(directory, &report);
    tell(report.damage, each, context);
    return s;
  });
}

int stride_salvage(const char* source, const char* new_directory,
                   const stride_copy_options* options, stride_damage_callback lost, void* context,
                   stride_salvage_report* report) {
  return run([&] {
    STRIDE_TRY(check_pointer(source, "source"));
    STRIDE_TRY(check_pointer(new_directory, "new_directory"));
    CopyOptions o;
    STRIDE_TRY(read_copy_options(options, &o));
    stride_salvage_report made{};
    auto hand_out = [&] {
      if (!report) return Status();
      return write_struct(&made, "stride_salvage_report", sizeof made, sizeof made, report->size,
                          report);
    };
    STRIDE_TRY(hand_out());  // what is there then must not be told as a failure
    SalvageReport done;
    STRIDE_TRY(salvage(source, new_directory, o, &done));
    if (lost) tell(done.lost, lost, context);
    made = to_c(done);
    return hand_out();
  });
}
