#include "engine/catalog/poison.h"

#include "storage/no_throw.h"

namespace stride {

Status Poison::set(Status why) noexcept {
  std::lock_guard lock(mutex_);
  status_ = plain_;
  (void)no_throw([&] {
    status_ =
        Status(StatusCode::poisoned, "an earlier write or sync failed (" + why.message() +
                                         "): nothing more is written through this handle")
            .with_file(why.file())
            .with_remedy("check the disk, then open the database again; reads go on meanwhile");
    return Status();
  });
  return why;
}

}  // namespace stride
