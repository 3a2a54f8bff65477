#include "engine/read/device_lookup.h"

#include <string>
#include <vector>

#include "storage/quoted.h"

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
  for (const auto& s : segments) {
    if (s->may_expire())
      return Status(StatusCode::unavailable,
                    "rows of the table have ended, which the device does not look at")
          .with_remedy("compact the database, or use find() or get()");
    STRIDE_TRY(s->prepare());
  }
  Executor::Batch batch = executor.batch(segments, queries.size, /*insist=*/true);
  bool there = segments.empty() || (values ? batch.all_values_on_device() : batch.all_on_device());
  if (!there)
    return Status(StatusCode::unavailable, values ? "the table's values are not all on the device"
                                                  : "the table is not all on the device")
        .with_remedy(values ? "set value_placement to device and raise gpu_memory_limit_bytes, or "
                              "use get(), as for a table with share_equal_values"
                            : "raise gpu_memory_limit_bytes, or use find()");
  Status status = work(device, batch.indexes());
  if (status.ok()) executor.count_device_keys(queries.size);
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
  const void* to = out.width ? static_cast<const void*>(out.values) : out.offsets;
  return with_all_on_device(executor, segments, queries, to, /*values=*/true,
                            [&](Backend& device, std::span<const IndexView> indexes) {
                              return device.tree_index().get_on_device(indexes, queries, out,
                                                                       stream);
                            });
}

Status rows_on_device(Executor& executor, const SegmentList& segments, const Location* locations,
                      uint64_t count, const GatheredRows& out, void* stream) {
  const void* to = out.value_width ? out.values : out.keys;
  return with_all_on_device(
      executor, segments, Column::fixed(locations, sizeof(Location), count), to,
      /*values=*/out.value_width != 0, [&](Backend& device, std::span<const IndexView> indexes) {
        return device.tree_index().gather_on_device(indexes, locations, count, out, stream);
      });
}

namespace {

DeviceKeyPart::Kind kind_of(FieldType type) {
  switch (type) {
    case FieldType::boolean:
    case FieldType::u8:
    case FieldType::u16:
    case FieldType::u32:
    case FieldType::u64:
      return DeviceKeyPart::Kind::unsigned_number;
    case FieldType::f32:
    case FieldType::f64:
      return DeviceKeyPart::Kind::floating;
    case FieldType::uuid:
    case FieldType::string:
    case FieldType::bytes:
      return DeviceKeyPart::Kind::bytes;
    default:
      return DeviceKeyPart::Kind::signed_number;
  }
}

}  // namespace

Status make_keys_on_device(Executor& executor, const Schema& schema,
                           std::span<const CellColumn> columns, std::byte* keys, void* stream) {
  const std::vector<Field>& fields = schema.key();
  if (columns.size() != fields.size() || columns.empty() || schema.key_width() == 0)
    return Status::invalid(std::to_string(columns.size()) +
                           " columns are given for keys of the schema " + schema.to_string())
        .with_remedy("give a column for each key column, all of which have a width");
  std::vector<DeviceKeyPart> parts;
  for (size_t i = 0; i < fields.size(); ++i) {
    const CellColumn& column = columns[i];
    if (column.offsets || column.width != cell_width(fields[i]) || column.size != columns[0].size)
      return Status::invalid("key column " + in_quotes(fields[i].name) + " is of type " +
                             type_text(fields[i]) + ", and other cells or rows are given");
    if (column.valid)
      return Status::invalid("key column " + in_quotes(fields[i].name) +
                             " says which cells are null, and keys have no nulls")
          .with_remedy("leave such rows out, or give them a key, and set valid to null");
    parts.push_back({column.data, column.stride, column.width, kind_of(fields[i].type)});
  }
  auto device = device_that_holds(
      executor, Column::fixed(columns[0].data, columns[0].width, columns[0].size), keys);
  if (!device.ok()) return device.status();
  return (*device)->tree_index().make_keys_on_device(parts, columns[0].size, keys, stream);
}

}  // namespace stride
