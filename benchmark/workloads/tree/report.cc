#include "benchmark/workloads/tree/report.h"

#include <algorithm>
#include <map>

#include "benchmark/harness/arguments.h"
#include "benchmark/harness/text_table.h"

namespace stride::benchmark {
namespace {

// The rows of one line of the table.
struct Line {
  std::string name;
  std::vector<const ResultRow*> rows;

  const ResultRow* find(const std::string& phase) const {
    for (const ResultRow* row : rows) {
      if (row->phase == phase) return row;
    }
    return nullptr;
  }
};

bool is_latency(const ResultRow& row) { return row.numbers.contains("batch"); }

// "u64 1m"
std::string keys_name(const ResultRow& row) {
  return row.texts.at("key_kind") + " " + batch_name(static_cast<uint64_t>(row.numbers.at("keys")));
}

std::string tree_line_name(const ResultRow& row) {
  return keys_name(row) + ", " + (row.engine == "stride" ? row.engine_name() : row.engine);
}

std::vector<Line> find_lines(const std::vector<ResultRow>& rows) {
  std::vector<Line> lines;
  for (const ResultRow& row : rows) {
    if (lines.empty() || lines.back().name != tree_line_name(row))
      lines.push_back({tree_line_name(row), {}});
    lines.back().rows.push_back(&row);
  }
  return lines;
}

std::vector<std::string> find_phases(const std::vector<ResultRow>& rows, bool latency) {
  std::vector<std::string> phases;
  for (const ResultRow& row : rows) {
    if (is_latency(row) != latency) continue;
    if (std::find(phases.begin(), phases.end(), row.phase) == phases.end()) {
      phases.push_back(row.phase);
    }
  }
  return phases;
}

// How many times as fast as std::lower_bound finds the same keys.
std::string find_ratio(const std::vector<Line>& lines, const Line& line) {
  const ResultRow* row = line.find("find");
  if (row == nullptr || row->engine != "stride") return "-";
  for (const Line& other : lines) {
    const ResultRow* plain = other.find("find");
    if (plain == nullptr || plain->engine != "std::lower_bound") continue;
    if (keys_name(*plain) != keys_name(*row)) continue;
    return three_digits(row->records_per_second() / plain->records_per_second()) + "x";
  }
  return "-";
}

std::string cell(const ResultRow* row, const std::string& name) {
  bool known = row != nullptr && row->numbers.contains(name);
  return known ? three_digits(row->numbers.at(name)) : "-";
}

std::string rates(const std::vector<Line>& lines, const std::vector<std::string>& phases) {
  TextTable table;
  std::vector<std::string> header = {"M keys a second"};
  for (const std::string& phase : phases) header.push_back(phase_title(phase));
  for (const char* title :
       {"find to std", "% of limit", "bytes/key", "tree bytes/key", "strides"}) {
    header.push_back(title);
  }
  table.add(header);
  table.add_rule();
  for (const Line& line : lines) {
    std::vector<std::string> cells = {line.name};
    for (const std::string& phase : phases) {
      const ResultRow* row = line.find(phase);
      cells.push_back(row ? three_digits(row->records_per_second() / 1e6) : "-");
    }
    const ResultRow* any = line.rows[0];
    cells.push_back(find_ratio(lines, line));
    cells.push_back(cell(line.find("find"), "limit_percent"));
    cells.push_back(cell(any, "bytes_per_key"));
    cells.push_back(cell(any, "image_bytes_per_key"));
    auto strides = any->texts.find("strides_built");
    cells.push_back(strides == any->texts.end() ? "-" : strides->second);
    table.add(cells);
  }
  return table.to_string();
}

std::string latencies(const std::vector<Line>& lines, const std::vector<std::string>& phases) {
  TextTable table;
  std::vector<std::string> header = {"microseconds a find of"};
  for (const std::string& phase : phases) header.push_back(phase.substr(sizeof("find_batch_") - 1));
  table.add(header);
  table.add_rule();
  for (const Line& line : lines) {
    if (line.find(phases[0]) == nullptr) continue;
    std::vector<std::string> cells = {line.name};
    for (const std::string& phase : phases) {
      const ResultRow* row = line.find(phase);
      cells.push_back(row ? three_digits(row->seconds * 1e6) : "-");
    }
    table.add(cells);
  }
  return table.to_string();
}

std::string limits(const std::vector<Line>& lines) {
  TextTable table;
  table.add({"limits, measured", "table MB", "M random reads/s", "copy GB/s", "bus in GB/s",
             "bus out GB/s"});
  table.add_rule();
  for (const Line& line : lines) {
    const ResultRow& row = *line.rows[0];
    if (!row.numbers.contains("gathers_per_second")) continue;
    auto scaled = [&](const char* name, double unit) {
      double value = row.number_of(name);
      return value > 0 ? three_digits(value / unit) : "-";
    };
    table.add({line.name, scaled("table_bytes", 1e6), scaled("gathers_per_second", 1e6),
               scaled("copy_bytes_per_second", 1e9), scaled("bus_in_bytes_per_second", 1e9),
               scaled("bus_out_bytes_per_second", 1e9)});
  }
  return table.to_string();
}

}  // namespace

std::string tree_tables(const std::vector<ResultRow>& rows) {
  std::vector<Line> lines = find_lines(rows);
  std::string text = rates(lines, find_phases(rows, false));
  std::vector<std::string> batches = find_phases(rows, true);
  if (!batches.empty()) text += "\n" + latencies(lines, batches);
  return text + "\n" + limits(lines) +
         "find to std: to std::lower_bound, which runs on the host; % of limit: of find, where "
         "the\n"
         "limit is one random read of memory a query, or what the bus allows where queries come\n"
         "through it; bytes/key: of keys and tree, where they are searched\n";
}

std::vector<ResultRow> tree_plot_rows(const std::vector<ResultRow>& rows) {
  bool latency = std::any_of(rows.begin(), rows.end(), is_latency);
  std::vector<std::string> cases, configurations;
  for (const ResultRow& row : rows) {
    if (row.engine != "stride") continue;
    if (std::find(cases.begin(), cases.end(), tree_line_name(row)) == cases.end()) {
      cases.push_back(tree_line_name(row));
    }
    if (std::find(configurations.begin(), configurations.end(), row.configuration) ==
        configurations.end()) {
      configurations.push_back(row.configuration);
    }
  }
  std::vector<ResultRow> plot;
  for (ResultRow row : rows) {
    if (latency != is_latency(row)) continue;
    // Every group and series has to say only what others do not share.
    std::string group = keys_name(row);
    if (configurations.size() > 1 && row.engine == "stride") group += " " + row.configuration;
    std::string phase = row.phase;
    if (latency) {
      row.phase = batch_name(static_cast<uint64_t>(row.numbers.at("batch"))) + " a call";
      row.configuration = group;
    } else if (cases.size() > 1) {
      row.phase = group;
      row.configuration = phase_title(phase);
    }
    plot.push_back(std::move(row));
  }
  return plot;
}

}  // namespace stride::benchmark
