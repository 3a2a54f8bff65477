// Ordered reading.
#include <optional>

#include "adapters/c/error.h"
#include "adapters/c/objects.h"

using namespace stride;
using namespace stride::c;

static_assert(sizeof(stride_scan_options) == 72);

namespace {

Status read_bound(const stride_bytes& given, std::optional<std::string>* bound) {
  if (given.data) *bound = std::string(static_cast<const char*>(given.data), given.size);
  if (!given.data && given.size) return Status::invalid("the data of a bound is NULL");
  return {};
}

// Calls open(snapshot, table), which returns a Result<Scan>.
template <class Open>
int open_scan(stride_snapshot* snapshot, stride_table* table, stride_scan** scan,
              const Open& open) {
  if (scan) *scan = nullptr;
  return run([&] {
    return read_table(snapshot, table, [&](const Snapshot& s, const Table& t) -> Status {
      STRIDE_TRY(check_pointer(scan, "scan"));
      Result<Scan> opened = open(s, t);
      if (!opened.ok()) return opened.status();
      return make_handle(std::make_unique<ScanObject>(std::move(*opened)), scan);
    });
  });
}

stride_column view_of(const Column& c) { return {c.data, c.offsets, c.size, c.width}; }

}  // namespace

Status stride::c::read_range(const stride_scan_options* given, ScanOptions* options) {
  if (!given) return {};
  stride_scan_options o;
  STRIDE_TRY(read_struct(given, "stride_scan_options", sizeof o, sizeof o, &o));
  STRIDE_TRY(read_bound(o.from, &options->from));
  STRIDE_TRY(read_bound(o.to, &options->to));
  STRIDE_TRY(read_bound(o.prefix, &options->prefix));
  options->from_inclusive = !o.from_exclusive;
  options->to_inclusive = o.to_inclusive != 0;
  options->reverse = o.reverse != 0;
  options->batch_rows = o.batch_rows;
  return {};
}

int stride_scan_options_init(stride_scan_options* options, size_t size) {
  return run([&] {
    STRIDE_TRY(check_pointer(options, "options"));
    stride_scan_options o{};
    return write_struct(&o, "stride_scan_options", sizeof o, sizeof o, size, options);
  });
}

int stride_scan_open(stride_snapshot* snapshot, stride_table* table,
                     const stride_scan_options* options, stride_scan** scan) {
  return open_scan(snapshot, table, scan, [&](const Snapshot& s, const Table& t) -> Result<Scan> {
    ScanOptions o;
    STRIDE_TRY(read_range(options, &o));
    return s.scan(t, o);
  });
}

int stride_scan_inside(stride_snapshot* snapshot, stride_table* table, const void* key,
                       uint64_t key_bytes, stride_scan** scan) {
  return open_scan(snapshot, table, scan, [&](const Snapshot& s, const Table& t) -> Result<Scan> {
    Bytes k;
    STRIDE_TRY(read_bytes(key, key_bytes, "key", &k));
    return s.inside(t, k);
  });
}

int stride_scan_next(stride_scan* scan, stride_column* keys, stride_column* values) {
  return run([&]() -> Status {
    Use<ScanObject> s;
    STRIDE_TRY(s.begin(scan));
    STRIDE_TRY(check_pointer(keys, "keys"));
    STRIDE_TRY(check_pointer(values, "values"));
    ScanBatch batch;
    if (!s->scan.next(&batch)) {
      *keys = *values = {};
      return s->scan.status();
    }
    *keys = view_of(batch.keys);
    *values = view_of(batch.values);
    return {};
  });
}

int stride_scan_release(stride_scan* scan) {
  return run([&] { return release_handle<ScanObject>(scan); });
}
