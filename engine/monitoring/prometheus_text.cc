// The exposition format of Prometheus, version 0.0.4
// (prometheus.io/docs/instrumenting/exposition_formats).
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "engine/metrics.h"
#include "storage/quoted.h"
#include "storage/utf8.h"

namespace stride {
namespace {

std::string number_text(double value) {
  std::array<char, 40> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 9);
  return {text.data(), end.ptr};
}

std::string escaped_label(std::string_view value) {
  std::string text;
  for (size_t i = 0, n; i < value.size(); i += n) {
    n = utf8_bytes(reinterpret_cast<const unsigned char*>(value.data()) + i, value.size() - i);
    if (n == 0) {
      n = 1;
      text += "\\\\x";
      append_hex(static_cast<std::byte>(value[i]), &text);
    } else if (value[i] == '\n') {
      text += "\\n";
    } else {
      if (value[i] == '\\' || value[i] == '"') text += '\\';
      text += value.substr(i, n);
    }
  }
  return text;
}

class Exposition {
 public:
  // HELP texts have neither backslashes nor line ends.
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = "stride_";
    name_ += name;
    text_ += "# HELP " + name_ + " ";
    text_ += help;
    text_ += "\n# TYPE " + name_ + " ";
    text_ += type;
    text_ += "\n";
  }
  // A sample of the family that has begun. labels: "a=\"b\"", or nothing.
  void add(std::string_view suffix, std::string_view labels, const std::string& value) {
    text_ += name_;
    text_ += suffix;
    if (!labels.empty()) {
      text_ += "{";
      text_ += labels;
      text_ += "}";
    }
    text_ += " " + value + "\n";
  }
  void counter(std::string_view name, std::string_view help, uint64_t value) {
    begin(name, "counter", help);
    add("", "", std::to_string(value));
  }
  void counter_s(std::string_view name, std::string_view help, double value) {
    begin(name, "counter", help);
    add("", "", number_text(value));
  }
  void gauge(std::string_view name, std::string_view help, uint64_t value) {
    begin(name, "gauge", help);
    add("", "", std::to_string(value));
  }
  void gauge_of_ratio(std::string_view name, std::string_view help, double value) {
    begin(name, "gauge", help);
    add("", "", number_text(value));
  }
  void summary(std::string_view name, std::string_view help, const LatencyMetrics& latency) {
    begin(name, "summary", help);
    for (const auto& [quantile, seconds] : {std::pair("0.5", latency.p50_s),
                                            {"0.9", latency.p90_s},
                                            {"0.99", latency.p99_s},
                                            {"0.999", latency.p999_s},
                                            {"1", latency.max_s}})
      add("", "quantile=\"" + std::string(quantile) + "\"",
          latency.count > 0 ? number_text(seconds) : "NaN");
    add("_sum", "", number_text(latency.sum_s));
    add("_count", "", std::to_string(latency.count));
  }
  std::string take() { return std::move(text_); }

 private:
  std::string name_, text_;
};

void add_reads(const OperationMetrics& m, Exposition* out) {
  out->counter("gets_total", "Lookups of single keys.", m.gets);
  out->counter("get_found_total", "Single keys that were there.", m.get_found);
  out->counter("get_bytes_total", "Bytes of the values of single keys.", m.get_bytes);
  out->counter("batch_gets_total", "Lookups of columns of keys.", m.batch_gets);
  out->counter("batch_keys_total", "Keys of these columns.", m.batch_keys);
  out->counter("batch_found_total", "Keys of columns that were there.", m.batch_found);
  out->counter("batch_bytes_total", "Bytes of values copied for columns of keys.", m.batch_bytes);
  out->counter("device_keys_total", "Keys and addresses that a device has searched.",
               m.device_keys);
  out->counter("lower_bounds_total", "Keys whose lower bound was looked for.", m.lower_bounds);
  out->counter("scans_total", "Scans begun.", m.scans);
  out->counter("scan_rows_total", "Rows that scans have handed out.", m.scan_rows);
  out->counter("scan_bytes_total", "Bytes of keys and values of these rows.", m.scan_bytes);
  out->counter("match_addresses_total", "Addresses whose longest prefix was looked for.",
               m.match_addresses);
  out->counter("match_found_total", "Addresses that a prefix covers.", m.match_found);
  out->summary("get_seconds", "Latency of lookups of single keys, one in 128 of each thread.",
               m.get_latency);
}

void add_commits(const OperationMetrics& m, Exposition* out) {
  out->begin("commits_total", "counter",
             "Commits by the way they went: through the log, or as a run.");
  out->add("", "size=\"small\"", std::to_string(m.small_commits));
  out->add("", "size=\"large\"", std::to_string(m.large_commits));
  out->counter("failed_commits_total", "Commits that have failed.", m.failed_commits);
  out->counter("committed_rows_total", "Rows of commits.", m.committed_rows);
  out->counter("committed_bytes_total", "Bytes of the keys and values of these rows.",
               m.committed_bytes);
  out->summary("commit_seconds", "Latency of commits.", m.commit_latency);
}

void add_work(const WorkMetrics& m, Exposition* out) {
  out->counter("log_bytes_total", "Bytes written to the write-ahead log.", m.log_bytes);
  out->counter("log_syncs_total", "Syncs of the write-ahead log.", m.log_syncs);
  out->counter("bulk_bytes_total", "Bytes of the runs of large commits.", m.bulk_bytes);
  out->counter("flushes_total", "Memtables that have become runs.", m.flushes);
  out->counter("failed_flushes_total", "Flushes that have failed.", m.failed_flushes);
  out->counter("flush_memory_bytes_total", "Bytes of memory of the memtables flushed.",
               m.flush_memory_bytes);
  out->counter("flush_bytes_total", "Bytes of the runs of memtables.", m.flush_bytes);
  out->counter_s("flush_seconds_total", "Time that flushes took.", m.flush_s);
  out->counter("compactions_total", "Merges of runs.", m.compactions);
  out->counter("failed_compactions_total", "Merges that have failed.", m.failed_compactions);
  out->counter("compaction_read_bytes_total", "Bytes of the runs that were merged.",
               m.compaction_read_bytes);
  out->counter("compaction_bytes_total", "Bytes that merges have written.", m.compaction_bytes);
  out->counter_s("compaction_seconds_total", "Time that merges took.", m.compaction_s);
  out->counter("stalls_total", "Times that commits waited for flushes or merges.", m.stalls);
  out->counter_s("stall_seconds_total", "Time that commits waited for these.", m.stall_s);
  out->counter("device_copies_total", "Segments copied to a device.", m.device_copies);
  out->counter("device_evictions_total", "Segments that have left a device.", m.device_evictions);
  out->counter("events_total", "Events for listener and log.", m.events);
  out->counter("dropped_events_total", "Events that a slow listener has missed.", m.dropped_events);
}

void add_state(const StateMetrics& m, Exposition* out) {
  out->gauge("segment_bytes", "Bytes of the files of segments.", m.segment_bytes);
  out->gauge("log_file_bytes", "Bytes of the files of the write-ahead log.", m.log_bytes);
  out->gauge("size_bytes", "Bytes of all files.", m.size_bytes);
  out->gauge("memtable_bytes", "Bytes of memory of memtables.", m.memtable_bytes);
  out->gauge("sealed_memtables", "Memtables on their way to be runs.", m.sealed_memtables);
  out->gauge("debt_bytes", "Bytes that flushes and merges have before them.", m.debt_bytes);
  out->gauge("resident_bytes", "Bytes of segments in memory.", m.resident_bytes);
  out->gauge("device_segments", "Segments that lie on a device.", m.device_segments);
  out->gauge("device_bytes", "Bytes of these in the memory of the device.", m.device_bytes);
  out->gauge_of_ratio("write_amplification", "Bytes written for each byte committed.",
                      m.write_amplification);
  out->gauge_of_ratio("space_amplification", "Bytes of segments for each byte of oldest runs.",
                      m.space_amplification);
  out->gauge("poisoned", "1: nothing more is written through the handle.", m.poisoned);
  out->gauge("read_only", "1: the handle only reads.", m.read_only);
}

void add_tables(const std::vector<TableStatistics>& tables, Exposition* out) {
  struct Family {
    const char *name, *help;
    uint64_t TableStatistics::*value;
  };
  for (const Family& family :
       {Family{"table_runs", "Runs that a lookup in the table visits.", &TableStatistics::runs},
        {"table_segments", "Segments of the table.", &TableStatistics::segments},
        {"table_rows", "Stored entries of the table.", &TableStatistics::rows},
        {"table_memtable_rows", "Of these, in memtables.", &TableStatistics::memtable_rows},
        {"table_bytes", "Bytes of the table's segments.", &TableStatistics::bytes_on_disk},
        {"table_reclaimable_bytes", "Of these, of erased rows.",
         &TableStatistics::reclaimable_bytes}}) {
    out->begin(family.name, "gauge", family.help);
    for (const TableStatistics& table : tables)
      out->add("", "table=\"" + escaped_label(table.name) + "\"",
               std::to_string(table.*family.value));
  }
}

}  // namespace

std::string prometheus_text(const Metrics& metrics, MetricsPart part) {
  Exposition out;
  if (part == MetricsPart::all) {
    add_reads(metrics.operations, &out);
    add_commits(metrics.operations, &out);
    add_work(metrics.work, &out);
  }
  add_state(metrics.state, &out);
  add_tables(metrics.state.tables, &out);
  return out.take();
}

}  // namespace stride
