// Groups of rows, and what is known of each.
#include "engine/group_by.h"

#include "adapters/c/error.h"
#include "adapters/c/objects.h"

using namespace stride;
using namespace stride::c;

static_assert(sizeof(stride_group_options) == 32 && sizeof(stride_group_columns) == 88);

namespace {

Status read_options(const stride_group_options* given, GroupOptions* options) {
  if (!given) return {};
  stride_group_options o;
  STRIDE_TRY(read_struct(given, "stride_group_options", sizeof o, sizeof o, &o));
  STRIDE_TRY(check_choice(o.numbers, STRIDE_NUMBERS_F64, "numbers"));
  if (o.reserved) return Status::invalid("reserved of stride_group_options is not 0");
  options->prefix_bytes = o.prefix_bytes;
  options->type = static_cast<NumberType>(o.numbers);
  options->sum = o.sum != 0;
  options->min = o.min != 0;
  options->max = o.max != 0;
  return {};
}

template <class T>
const T* data_or_null(std::span<const T> column) {
  return column.empty() ? nullptr : column.data();
}

}  // namespace

int stride_group_options_init(stride_group_options* options, size_t size) {
  return run([&] {
    STRIDE_TRY(check_pointer(options, "options"));
    stride_group_options o{};
    return write_struct(&o, "stride_group_options", sizeof o, sizeof o, size, options);
  });
}

int stride_group_by(stride_snapshot* snapshot, stride_table* table,
                    const stride_scan_options* range, const stride_group_options* options,
                    stride_groups** groups) {
  if (groups) *groups = nullptr;
  return run([&] {
    return read_table(snapshot, table, [&](const Snapshot& s, const Table& t) -> Status {
      STRIDE_TRY(check_pointer(groups, "groups"));
      ScanOptions in;
      GroupOptions how;
      STRIDE_TRY(read_range(range, &in));
      STRIDE_TRY(read_options(options, &how));
      Result<GroupResult> result = group_by(s, t, in, how);
      if (!result.ok()) return result.status();
      return make_handle(std::make_unique<GroupsObject>(GroupsObject{std::move(*result)}), groups);
    });
  });
}

int stride_groups_read(stride_groups* groups, stride_group_columns* columns) {
  return run([&] {
    Use<GroupsObject> g;
    STRIDE_TRY(g.begin(groups));
    STRIDE_TRY(check_pointer(columns, "columns"));
    const GroupResult& r = g->result;
    const Column keys = r.keys();
    stride_group_columns out{sizeof out,
                             r.size(),
                             {keys.data, keys.offsets, keys.size, keys.width},
                             data_or_null(r.counts()),
                             data_or_null(r.integer_sums()),
                             data_or_null(r.float_sums()),
                             data_or_null(r.mins()),
                             data_or_null(r.maxes())};
    return write_struct(&out, "stride_group_columns", sizeof out, sizeof out, columns->size,
                        columns);
  });
}

int stride_groups_release(stride_groups* groups) {
  return run([&] { return release_handle<GroupsObject>(groups); });
}
