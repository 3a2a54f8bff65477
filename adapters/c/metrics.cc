// Metrics, and callbacks that are told what a database does.
#include "engine/metrics.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "adapters/c/error.h"
#include "adapters/c/objects.h"
#include "adapters/c/stridedb_metrics.h"
#include "engine/event_listener.h"
#include "engine/logger.h"

using namespace stride;
using namespace stride::c;

static_assert(STRIDE_EVENT_OPENED == int(EventKind::opened) &&
              STRIDE_EVENT_STALLED == int(EventKind::stalled) &&
              STRIDE_EVENT_DEVICE_LOST == int(EventKind::device_lost));
static_assert(STRIDE_LOG_INFO == int(LogLevel::info) && STRIDE_LOG_ERROR == int(LogLevel::error));
static_assert(sizeof(stride_latency) == 56 && sizeof(stride_metrics) == 560);
static_assert(sizeof(stride_event) == 104 && sizeof(stride_watch_options) == 48);

namespace {

stride_latency latency_of(const LatencyMetrics& l) {
  return {l.count, l.sum_s, l.p50_s, l.p90_s, l.p99_s, l.p999_s, l.max_s};
}

void copy_operations(const OperationMetrics& from, stride_metrics* to) {
  to->gets = from.gets;
  to->get_found = from.get_found;
  to->get_bytes = from.get_bytes;
  to->batch_gets = from.batch_gets;
  to->batch_keys = from.batch_keys;
  to->batch_found = from.batch_found;
  to->batch_bytes = from.batch_bytes;
  to->device_keys = from.device_keys;
  to->lower_bounds = from.lower_bounds;
  to->scans = from.scans;
  to->scan_rows = from.scan_rows;
  to->scan_bytes = from.scan_bytes;
  to->match_addresses = from.match_addresses;
  to->match_found = from.match_found;
  to->small_commits = from.small_commits;
  to->large_commits = from.large_commits;
  to->failed_commits = from.failed_commits;
  to->committed_rows = from.committed_rows;
  to->committed_bytes = from.committed_bytes;
  to->get_latency = latency_of(from.get_latency);
  to->commit_latency = latency_of(from.commit_latency);
}

void copy_work(const WorkMetrics& from, stride_metrics* to) {
  to->log_bytes = from.log_bytes;
  to->log_syncs = from.log_syncs;
  to->bulk_bytes = from.bulk_bytes;
  to->flushes = from.flushes;
  to->failed_flushes = from.failed_flushes;
  to->flush_memory_bytes = from.flush_memory_bytes;
  to->flush_bytes = from.flush_bytes;
  to->flush_s = from.flush_s;
  to->compactions = from.compactions;
  to->failed_compactions = from.failed_compactions;
  to->compaction_read_bytes = from.compaction_read_bytes;
  to->compaction_bytes = from.compaction_bytes;
  to->compaction_s = from.compaction_s;
  to->stalls = from.stalls;
  to->stall_s = from.stall_s;
  to->device_copies = from.device_copies;
  to->device_evictions = from.device_evictions;
  to->events = from.events;
  to->dropped_events = from.dropped_events;
}

void copy_state(const StateMetrics& from, stride_metrics* to) {
  to->tables = from.tables.size();
  to->runs = from.runs;
  to->segments = from.segments;
  to->rows = from.rows;
  to->memtable_rows = from.memtable_rows;
  to->segment_bytes = from.segment_bytes;
  to->log_file_bytes = from.log_bytes;
  to->size_bytes = from.size_bytes;
  to->memtable_bytes = from.memtable_bytes;
  to->sealed_memtables = from.sealed_memtables;
  to->debt_bytes = from.debt_bytes;
  to->resident_bytes = from.resident_bytes;
  to->device_segments = from.device_segments;
  to->device_bytes = from.device_bytes;
  to->write_amplification = from.write_amplification;
  to->space_amplification = from.space_amplification;
  to->poisoned = from.poisoned;
  to->read_only = from.read_only;
}

class CallbackListener final : public EventListener {
 public:
  explicit CallbackListener(const stride_watch_options& o)
      : call_(o.on_event), context_(o.event_context) {}

  void on_event(const Event& event) override {
    const std::string line = to_string(event);
    const auto time = event.time.time_since_epoch();
    const stride_event e{
        .size = sizeof e,
        .kind = static_cast<int>(event.kind),
        .status = static_cast<int>(event.status.code()),
        .time_us = std::chrono::duration_cast<std::chrono::microseconds>(time).count(),
        .number = event.number,
        .dropped = event.dropped,
        .table = event.table.c_str(),
        .run = event.run,
        .inputs = event.inputs,
        .rows = event.rows,
        .bytes_in = event.bytes_in,
        .bytes_out = event.bytes_out,
        .seconds = event.seconds,
        .line = line.c_str()};
    call_(context_, &e);
  }

 private:
  void (*const call_)(void*, const stride_event*);
  void* const context_;
};

class CallbackLogger final : public Logger {
 public:
  explicit CallbackLogger(const stride_watch_options& o)
      : call_(o.on_line), context_(o.line_context) {}

  void log(LogLevel level, std::string_view line) override {
    call_(context_, static_cast<int>(level), std::string(line).c_str());
  }

 private:
  void (*const call_)(void*, int, const char*);
  void* const context_;
};

stride_watch_options default_watch() {
  stride_watch_options o{};
  o.size = sizeof o;
  o.log_file = Options().log_file;
  return o;
}

Status read_watch(const stride_watch_options* given, Options* options) {
  stride_watch_options o = default_watch();
  if (given) STRIDE_TRY(read_struct(given, "stride_watch_options", sizeof o, sizeof o, &o));
  if (o.reserved) return Status::invalid("reserved of stride_watch_options is not 0");
  options->log_file = o.log_file != 0;
  if (o.on_event) options->event_listener = std::make_shared<CallbackListener>(o);
  if (o.on_line) options->logger = std::make_shared<CallbackLogger>(o);
  return {};
}

}  // namespace

int stride_metrics_read(stride_database* database, stride_metrics* metrics) {
  return run([&] {
    Use<DatabaseObject> db;
    STRIDE_TRY(db.begin(database));
    STRIDE_TRY(check_pointer(metrics, "metrics"));
    const Metrics m = db->database->metrics();
    stride_metrics ours{};
    copy_operations(m.operations, &ours);
    copy_work(m.work, &ours);
    copy_state(m.state, &ours);
    return write_struct(&ours, "stride_metrics", sizeof ours, sizeof ours, metrics->size, metrics);
  });
}

int stride_prometheus_text(stride_database* database, char* text, size_t room, size_t* bytes) {
  size_t needed = 0;
  const int status = run([&] {
    Use<DatabaseObject> db;
    STRIDE_TRY(db.begin(database));
    if (room > 0) STRIDE_TRY(check_pointer(text, "text"));
    const std::string made = prometheus_text(db->database->metrics());
    needed = made.size() + 1;
    if (needed <= room) std::memcpy(text, made.c_str(), needed);
    if (bytes) *bytes = needed;
    return Status();
  });
  if (status != STRIDE_OK || needed <= room) return status;
  return fail_too_small([&] {
    return Status(StatusCode::resource_exhausted, "the text has " + std::to_string(needed) +
                                                      " bytes and there is room for " +
                                                      std::to_string(room))
        .with_remedy("give memory of somewhat more than that, for it may grow");
  });
}

int stride_watch_options_init(stride_watch_options* options, size_t size) {
  return run([&] {
    STRIDE_TRY(check_pointer(options, "options"));
    const stride_watch_options o = default_watch();
    return write_struct(&o, "stride_watch_options", sizeof o, sizeof o, size, options);
  });
}

int stride_open_watched(const char* path, const stride_options* options,
                        const stride_watch_options* watch, stride_database** database) {
  if (database) *database = nullptr;
  return run([&]() -> Status {
    Options o;
    STRIDE_TRY(read_watch(watch, &o));
    return open_database(path, options, std::move(o), database);
  });
}
