#include "engine/salvage.h"

#include <utility>

#include "engine/backup/copy_work.h"
#include "engine/salvage/salvager.h"
#include "engine/shared_database.h"
#include "storage/no_throw.h"

namespace stride {
namespace {

// Nothing is written into the source.
Status check_places(const std::string& source, const std::string& directory, FileSystem* fs) {
  auto lies_in = [&](const std::string& parent) {
    return is_same_directory(parent.empty() ? "/" : parent, source, fs);
  };
  bool is_inside = lies_in(directory) || (!directory.starts_with('/') && lies_in("."));
  for (size_t end = directory.size(); !is_inside && end != std::string::npos && end > 0;) {
    end = directory.find_last_of('/', end - 1);
    if (end != std::string::npos) is_inside = lies_in(directory.substr(0, end));
  }
  if (!is_inside) return {};
  return Status::invalid("the new database would lie in the damaged one, which is only read")
      .with_file(directory)
      .with_remedy("give another directory");
}

}  // namespace

Status salvage(const std::string& source, const std::string& new_directory,
               const CopyOptions& options, SalvageReport* report, FileSystem* file_system) {
  return no_throw([&] {
    STRIDE_TRY(check_places(source, new_directory, file_system));
    SalvageReport made;
    FileSystem& fs = file_system ? *file_system : FileSystem::posix();
    Status s = run_copy(options, [&](CopyCounters* counters) {
      return salvage_database(fs, source, new_directory, counters, &made);
    });
    if (s.ok() && report) *report = std::move(made);
    return s;
  });
}

}  // namespace stride
