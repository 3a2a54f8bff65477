// Checkpoints, backups and restored databases.
#include "engine/backup.h"

#include <string>

#include "adapters/c/copy_options.h"
#include "adapters/c/error.h"
#include "adapters/c/objects.h"
#include "adapters/c/stridedb_backup.h"

using namespace stride;
using namespace stride::c;

static_assert(sizeof(stride_copy_progress) == 40 && sizeof(stride_copy_options) == 24);
static_assert(sizeof(stride_copy_report) == 48);

namespace {

// Calls copy(options, &report) and hands out the report, whose struct is looked at before that: a
// copy that is there must not be told as one that has failed.
template <class Copy>
Status make_copy(const stride_copy_options* given, stride_copy_report* report, const Copy& copy) {
  CopyOptions options;
  STRIDE_TRY(read_copy_options(given, &options));
  stride_copy_report made{};
  auto hand_out = [&] {
    if (!report) return Status();
    return write_struct(&made, "stride_copy_report", sizeof made, sizeof made, report->size,
                        report);
  };
  STRIDE_TRY(hand_out());
  CopyReport done;
  STRIDE_TRY(copy(options, &done));
  made = {sizeof made,       done.files,        done.bytes,
          done.copied_files, done.copied_bytes, done.linked_files};
  return hand_out();
}

}  // namespace

Status stride::c::read_copy_options(const stride_copy_options* given, CopyOptions* options) {
  if (!given) return {};
  stride_copy_options o{};
  STRIDE_TRY(read_struct(given, "stride_copy_options", sizeof o, sizeof o, &o));
  if (!o.progress) return {};
  options->progress = [call = o.progress, context = o.progress_context](const CopyProgress& p) {
    const stride_copy_progress progress = {sizeof progress, p.files, p.total_files, p.bytes,
                                           p.total_bytes};
    return call(&progress, context) != 0;
  };
  return {};
}

int stride_copy_options_init(stride_copy_options* options, size_t size) {
  return run([&] {
    STRIDE_TRY(check_pointer(options, "options"));
    const stride_copy_options o = {sizeof o, nullptr, nullptr};
    return write_struct(&o, "stride_copy_options", sizeof o, sizeof o, size, options);
  });
}

int stride_checkpoint(stride_database* database, const char* directory,
                      const stride_copy_options* options, stride_copy_report* report) {
  return run([&] {
    Use<DatabaseObject> db;
    STRIDE_TRY(db.begin(database));
    STRIDE_TRY(check_pointer(directory, "directory"));
    return make_copy(options, report, [&](const CopyOptions& o, CopyReport* done) {
      return db->database->checkpoint(directory, o, done);
    });
  });
}

int stride_backup(stride_database* database, const char* directory,
                  const stride_copy_options* options, stride_copy_report* report) {
  return run([&] {
    Use<DatabaseObject> db;
    STRIDE_TRY(db.begin(database));
    STRIDE_TRY(check_pointer(directory, "directory"));
    return make_copy(options, report, [&](const CopyOptions& o, CopyReport* done) {
      return db->database->backup(directory, o, done);
    });
  });
}

int stride_restore(const char* backup_directory, const char* new_directory,
                   const stride_copy_options* options, stride_copy_report* report) {
  return run([&] {
    STRIDE_TRY(check_pointer(backup_directory, "backup_directory"));
    STRIDE_TRY(check_pointer(new_directory, "new_directory"));
    return make_copy(options, report, [&](const CopyOptions& o, CopyReport* done) {
      return restore(backup_directory, new_directory, o, done);
    });
  });
}
