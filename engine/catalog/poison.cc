#include "engine/catalog/poison.h"

#include "storage/no_throw.h"

namespace stride {

Status Poison::set(Status why) noexcept {
  std::lock_guard lock(mutex_);
  const bool is_first = status_.ok();
  status_ = plain_;
  (void)no_throw([&] {
    status_ =
        Status(StatusCode::poisoned, "an earlier write or sync failed (" + why.message() +
                                         "): nothing more is written through this handle")
            .with_file(why.file())
            .with_remedy("check the disk, then open the database again; reads go on meanwhile");
    return Status();
  });
  if (is_first && monitor_)
    monitor_->events().push({.kind = EventKind::poisoned, .status = status_});
  return why;
}

}  // namespace stride
