#include "engine/read/device_lookup.h"

namespace stride {

Result<std::shared_ptr<Backend>> device_that_holds(Executor& executor, const KeyColumn& queries,
                                                   const void* out) {
  auto device = executor.device();
  if (!device)
    return Status(StatusCode::unavailable, "there is no device, or it has failed")
        .with_remedy("use find() or get(), or reopen the database where there is a device");
  const void* source =
      queries.is_fixed() ? static_cast<const void*>(queries.data) : queries.offsets;
  if (queries.size > 0 && !(device->is_on_device(source) && device->is_on_device(out)))
    return Status::invalid("queries or results are not in the memory of " + device->name())
        .with_remedy("copy them there, or use find() or get()");
  return device;
}

namespace {

// Calls work(device, indexes) with all segments on the device. out: where results go.
template <class Work>
Status with_all_on_device(Executor& executor, const SegmentList& segments, const KeyColumn& queries,
                          const void* out, bool values, const Work& work) {
  auto found = device_that_holds(executor, queries, out);
  if (!found.ok()) return found.status();
  Backend& device = **found;
  for (const auto& s : segments) STRIDE_TRY(s->prepare());
  Executor::Batch batch = executor.batch(segments, queries.size, /*insist=*/true);
  bool there = segments.empty() || (values ? batch.all_values_on_device() : batch.all_on_device());
  if (!there)
    return Status(StatusCode::unavailable, values ? "the table's values are not all on the device"
                                                  : "the table is not all on the device")
        .with_remedy(values ? "set value_placement to device and raise gpu_memory_limit_bytes, or "
                              "use get(), as for a table with share_equal_values"
                            : "raise gpu_memory_limit_bytes, or use find()");
  Status status = work(device, batch.indexes());
  (void)executor.failed(status);
  return status;
}

}  // namespace

Status find_on_device(Executor& executor, const SegmentList& segments, const KeyColumn& queries,
                      Location* out, void* stream) {
  return with_all_on_device(executor, segments, queries, out, /*values=*/false,
                            [&](Backend& device, std::span<const IndexView> indexes) {
                              return device.tree_index().find_on_device(indexes, queries, out,
                                                                        stream);
                            });
}

Status get_on_device(Executor& executor, const SegmentList& segments, const KeyColumn& queries,
                     const DeviceValues& out, void* stream) {
  return with_all_on_device(executor, segments, queries, out.offsets, /*values=*/true,
                            [&](Backend& device, std::span<const IndexView> indexes) {
                              return device.tree_index().get_on_device(indexes, queries, out,
                                                                       stream);
                            });
}

}  // namespace stride
