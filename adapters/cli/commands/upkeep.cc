// stride stats, metrics, explain, compact and calibrate.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "adapters/cli/commands/table_notes.h"
#include "adapters/cli/context.h"
#include "adapters/cli/output/json_output.h"
#include "adapters/cli/output/progress.h"
#include "adapters/cli/subcommands.h"

namespace stride::cli {
namespace {

struct UpkeepArguments {
  std::string database, table;
};

using nlohmann::json;

json describe(const TableStatistics& table) {
  json result = {{"table", table.name},
                 {"key_width", table.key_width},
                 {"runs", table.runs},
                 {"segments", table.segments},
                 {"rows", table.rows},
                 {"memtable_rows", table.memtable_rows},
                 {"erased_rows", table.erased_rows},
                 {"bytes_on_disk", table.bytes_on_disk},
                 {"reclaimable_bytes", table.reclaimable_bytes},
                 {"filter_bytes", table.filter_bytes},
                 {"resident_bytes", table.resident_bytes},
                 {"device_bytes", table.device_bytes}};
  if (table.share_equal_values) {
    result["share_equal_values"] = true;
    result["stored_values"] = table.stored_values;
    result["saved_bytes"] = table.saved_bytes;
  }
  add_address_bits(table.address_bits, &result);
  add_numbers(table.numbers, table.overflow, &result);
  return result;
}

json describe(const SegmentReport& segment) {
  json levels = json::array();
  for (size_t i = 0; i < segment.strides.size(); ++i) {
    levels.push_back({{"stride", segment.strides[i]},
                      {"nodes", segment.nodes[i]},
                      {"kind", to_string(segment.kinds[i])}});
    if (!segment.visits.empty()) levels.back()["visits"] = segment.visits[i];
  }
  json result = {{"run", segment.run},
                 {"rows", segment.rows},
                 {"tombstones", segment.tombstones},
                 {"erased_rows", segment.erased_rows},
                 {"bytes_on_disk", segment.bytes_on_disk},
                 {"key_bytes", segment.key_bytes},
                 {"value_bytes", segment.value_bytes},
                 {"fixed_keys", segment.fixed_keys},
                 {"fixed_values", segment.fixed_values},
                 {"filter_bytes", segment.filter_bytes},
                 {"resident_bytes", segment.resident_bytes},
                 {"device_bytes", segment.device_bytes},
                 {"device_placement", segment.device_placement},
                 {"tree",
                  {{"levels", levels},
                   {"prefix_bits", segment.prefix_bits},
                   {"leaf_capacity", segment.leaf_capacity},
                   {"bytes", segment.tree_bytes}}}};
  if (segment.distinct_values) {
    result["distinct_values"] = segment.distinct_values;
    result["saved_bytes"] = segment.saved_bytes;
  }
  if (segment.expected_finds_per_second > 0) {
    result["tree"]["leaf_keys"] = segment.leaf_keys;
    result["tree"]["expected_finds_per_second"] = segment.expected_finds_per_second;
    result["tree"]["expected_on"] = segment.expected_on;
  }
  return result;
}

std::string ratio(uint64_t bytes, uint64_t rows) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f",
                rows ? static_cast<double>(bytes) / static_cast<double>(rows) : 0.0);
  return text;
}

std::string keys_text(const Table& table, const KeyForm& form) {
  if (table.address_bits() == byte_strings) return "prefixes of byte strings";
  if (table.address_bits())
    return "prefixes of addresses of " + std::to_string(table.address_bits()) + " bits";
  return "keys of type " + name_of(form);
}

// "########              40.0 %"
std::string bar(double share) {
  constexpr int width = 20;
  auto filled = static_cast<size_t>(std::lround(std::clamp(share, 0.0, 1.0) * width));
  char percent[16];
  std::snprintf(percent, sizeof percent, " %5.1f %%", 100 * share);
  return std::string(filled, '#') + std::string(width - filled, ' ') + percent;
}

std::string explain_text(const SegmentReport& s) {
  std::string text = "segment of run " + std::to_string(s.run) + ": " + with_commas(s.rows) +
                     " rows, " + byte_text(s.bytes_on_disk) + " on disk\n";
  text += "  keys      " + byte_text(s.key_bytes) + ", " + ratio(s.key_bytes, s.rows) +
          " bytes each" + (s.fixed_keys ? ", one width" : ", of many lengths") + "\n";
  uint64_t values = s.distinct_values ? s.distinct_values : s.rows;
  text += "  values    " + byte_text(s.value_bytes) + ", " + ratio(s.value_bytes, values) +
          " bytes each" + (s.fixed_values ? ", one width" : ", of many lengths") + "\n";
  if (s.distinct_values)
    text += "  shared    " + with_commas(s.distinct_values) + " distinct values, which saves " +
            byte_text(s.saved_bytes) + " on disk\n";
  if (s.tombstones) text += "  erased    " + with_commas(s.tombstones) + " keys of older runs\n";
  if (s.erased_rows)
    text +=
        "  erased    " + with_commas(s.erased_rows) + " rows by range; stride compact drops them\n";
  if (s.filter_bytes)
    text += "  filter    " + byte_text(s.filter_bytes) + ", " + ratio(s.filter_bytes, s.rows) +
            " bytes a key\n";
  text += "  tree      " + byte_text(s.tree_bytes) + ", " + ratio(s.tree_bytes, s.rows) +
          " bytes a key; leaves of up to " + std::to_string(s.leaf_capacity) +
          " keys; all keys share " + std::to_string(s.prefix_bits) + " bits\n";
  for (size_t i = 0; i < s.strides.size(); ++i) {
    std::string level = "  level " + std::to_string(i) + (i < 10 ? "   stride " : "  stride ") +
                        std::to_string(s.strides[i]) + ", " + with_commas(s.nodes[i]) +
                        (s.nodes[i] == 1 ? " node" : " nodes") +
                        (i ? std::string(", ") + to_string(s.kinds[i]) : "");
    if (!s.visits.empty()) {
      level.resize(std::max<size_t>(level.size(), 46), ' ');
      level += bar(s.visits[i]) + " of searches";
    }
    text += level + "\n";
  }
  if (s.expected_finds_per_second > 0) {
    char line[160];
    std::snprintf(line, sizeof line,
                  "  leaves    %.1f keys on average\n"
                  "  expected  %.3g million finds a second in large batches, on %s\n",
                  s.leaf_keys, s.expected_finds_per_second / 1e6, s.expected_on.c_str());
    text += line;
  }
  text += "  memory    " +
          (s.resident_bytes ? byte_text(s.resident_bytes) + " resident" : "mapped from the file") +
          "; on a device: " + (s.device_bytes ? byte_text(s.device_bytes) : "nothing") +
          (s.device_placement.empty() ? "" : ", " + s.device_placement) + "\n";
  return text;
}

void add_stats(CLI::App* command, UpkeepArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->footer("Examples:\n  stride stats db\n  stride stats db --json");
}

void add_metrics(CLI::App* command, UpkeepArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->footer(
      "Prints the state of the database as the text that Prometheus reads: for a cron job and the\n"
      "textfile collector, say. What an application does with it, that application tells\n"
      "(docs/monitoring.md).\n\n"
      "Examples:\n  stride metrics db > /var/lib/node_exporter/stride.prom\n"
      "  stride metrics db --json");
}

void add_explain(CLI::App* command, UpkeepArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->add_option("TABLE", a->table, "Name of the table")->required();
  command->footer(
      "Says how a lookup in the table goes: which segments it visits, newest first, and for each "
      "the\n"
      "tree with its strides and what lies in memory.\n\n"
      "Example:\n  stride explain db users");
}

void add_compact(CLI::App* command, UpkeepArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->footer(
      "Merges the runs of each table into one: worth it after many small loads.\n\n"
      "Example:\n  stride compact db");
}

void add_calibrate(CLI::App* command, UpkeepArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->footer(
      "Measures what reads of memory cost on this machine, which takes a few seconds at most, and\n"
      "keeps it in the database: trees of what is loaded or compacted from now on are planned by\n"
      "it. Best where nothing else runs.\n\n"
      "Example:\n  stride calibrate db");
}

ExitStatus run_stats(Context* context, const UpkeepArguments& arguments) {
  std::unique_ptr<Database> database;
  STRIDE_CLI_TRY(open_database(*context, arguments.database, Access::read, 0, &database));
  json tables = json::array();
  std::string lines = "bytes\t" + std::to_string(database->size_bytes()) + "\nbackend\t" +
                      database->backend_name() + "\n";
  for (const TableStatistics& table : database->tables()) {
    if (table.name == notes_table) continue;
    tables.push_back(describe(table));
    if (table.address_bits)
      lines += table.name + ".address_bits\t" + name_of_address_bits(table.address_bits) + "\n";
    if (table.numbers != NumberType::none)
      lines += table.name + ".numbers\t" + numbers_text(table.numbers, table.overflow) + "\n";
    if (table.share_equal_values) {
      lines += table.name + ".stored_values\t" + std::to_string(table.stored_values) + "\n";
      lines += table.name + ".saved_bytes\t" + std::to_string(table.saved_bytes) + "\n";
    }
    for (const char* name :
         {"key_width", "runs", "segments", "rows", "memtable_rows", "erased_rows", "bytes_on_disk",
          "reclaimable_bytes", "filter_bytes", "resident_bytes", "device_bytes"}) {
      lines +=
          table.name + "." + name + "\t" + std::to_string(uint64_t{tables.back()[name]}) + "\n";
    }
  }
  if (!context->json) return context->out.write(lines);
  json result = {
      {"bytes", database->size_bytes()}, {"backend", database->backend_name()}, {"tables", tables}};
  return context->out.write(text_of(result) + "\n");
}

ExitStatus run_metrics(Context* context, const UpkeepArguments& arguments) {
  std::unique_ptr<Database> database;
  STRIDE_CLI_TRY(open_database(*context, arguments.database, Access::read, 0, &database));
  Metrics metrics = database->metrics();
  StateMetrics& state = metrics.state;
  std::erase_if(state.tables, [](const auto& table) { return table.name == notes_table; });
  if (!context->json) return context->out.write(prometheus_text(metrics, MetricsPart::state));
  json tables = json::array();
  for (const TableStatistics& table : state.tables) tables.push_back(describe(table));
  json result = {{"runs", state.runs},
                 {"segments", state.segments},
                 {"rows", state.rows},
                 {"memtable_rows", state.memtable_rows},
                 {"segment_bytes", state.segment_bytes},
                 {"log_file_bytes", state.log_bytes},
                 {"size_bytes", state.size_bytes},
                 {"memtable_bytes", state.memtable_bytes},
                 {"sealed_memtables", state.sealed_memtables},
                 {"debt_bytes", state.debt_bytes},
                 {"resident_bytes", state.resident_bytes},
                 {"space_amplification", state.space_amplification},
                 {"tables", tables}};
  return context->out.write(text_of(result) + "\n");
}

ExitStatus run_explain(Context* context, const UpkeepArguments& arguments) {
  std::unique_ptr<Database> database;
  STRIDE_CLI_TRY(open_database(*context, arguments.database, Access::read, 0, &database));
  Table table;
  KeyForm form;
  STRIDE_CLI_TRY(open_table(*database, arguments.table, "", &table, &form));
  auto segments = database->segments(table);
  if (!segments.ok()) return segments.status();
  uint64_t memtable_rows = 0;
  for (const TableStatistics& t : database->tables())
    if (t.name == arguments.table) memtable_rows = t.memtable_rows;
  json list = json::array();
  std::string text;
  uint64_t runs = 0, last_run = 0, rows = memtable_rows;
  for (const SegmentReport& segment : *segments) {
    runs += runs == 0 || segment.run != last_run;
    last_run = segment.run;
    rows += segment.rows - segment.erased_rows;
    list.push_back(describe(segment));
    text += explain_text(segment);
  }
  if (context->json) {
    json result = {{"table", arguments.table},
                   {"key_type", name_of(form)},
                   {"key_width", table.key_width()},
                   {"runs", runs},
                   {"memtable_rows", memtable_rows},
                   {"backend", database->backend_name()},
                   {"segments", list}};
    add_address_bits(table.address_bits(), &result);
    add_numbers(table.numbers(), table.overflow(), &result);
    return context->out.write(text_of(result) + "\n");
  }
  std::string head =
      "table '" + arguments.table + "': " + keys_text(table, form) + ", " +
      (table.key_width() ? std::to_string(table.key_width()) + " bytes" : "any length") + "; " +
      (table.numbers() == NumberType::none
           ? ""
           : "values are " + numbers_text(table.numbers(), table.overflow()) + "; ") +
      with_commas(rows) + " stored rows; backend " + database->backend_name() + "\n";
  head += "a lookup visits " + std::to_string(runs) + (runs == 1 ? " run" : " runs") +
          (runs > 1 ? ", newest first; stride compact makes them one" : "") + "\n";
  if (memtable_rows > 0)
    head += "before these it looks into the " + with_commas(memtable_rows) +
            " newest rows, which are in the log and in memory\n";
  return context->out.write(head + text);
}

ExitStatus run_calibrate(Context* context, const UpkeepArguments& arguments) {
  std::unique_ptr<Database> database;
  STRIDE_CLI_TRY(open_database(*context, arguments.database, Access::write, 0, &database));
  Progress clock(context->environment.err, "calibrate", 0);
  STRIDE_CLI_TRY(database->calibrate());
  STRIDE_CLI_TRY(database->close());
  context->note("measured in " + seconds_text(clock.seconds()));
  if (!context->json) return {};
  return context->out.write(text_of(json{{"seconds", clock.seconds()}}) + "\n");
}

ExitStatus run_compact(Context* context, const UpkeepArguments& arguments) {
  std::unique_ptr<Database> database;
  STRIDE_CLI_TRY(open_database(*context, arguments.database, Access::write, 0, &database));
  Progress clock(context->environment.err, "compact", 0);
  uint64_t before = database->size_bytes();
  STRIDE_CLI_TRY(database->compact());
  context->done = all_done;
  uint64_t after = database->size_bytes();
  STRIDE_CLI_TRY(database->close());
  context->note("compacted " + byte_text(before) + " to " + byte_text(after) + " (" +
                seconds_text(clock.seconds()) + ")");
  if (!context->json) return {};
  json result = {{"bytes_before", before}, {"bytes", after}, {"seconds", clock.seconds()}};
  return context->out.write(text_of(result) + "\n");
}

const bool stats_registered =
    Subcommands::add(410, "stats", "Sizes of the database and its tables", &add_stats, &run_stats);
const bool metrics_registered = Subcommands::add(
    415, "metrics", "The state of a database, as text for Prometheus", &add_metrics, &run_metrics);
const bool explain_registered =
    Subcommands::add(420, "explain", "How a lookup in a table goes: segments, trees, memory",
                     &add_explain, &run_explain);
const bool compact_registered = Subcommands::add(
    440, "compact", "Merge what many loads have left behind", &add_compact, &run_compact);
const bool calibrate_registered =
    Subcommands::add(450, "calibrate", "Measure this machine's memory, by which trees are planned",
                     &add_calibrate, &run_calibrate);

}  // namespace
}  // namespace stride::cli
