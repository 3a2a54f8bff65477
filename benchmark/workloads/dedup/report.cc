#include "benchmark/workloads/dedup/report.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "benchmark/harness/arguments.h"
#include "benchmark/harness/report_cells.h"
#include "benchmark/harness/row_groups.h"
#include "benchmark/harness/text_table.h"

namespace stride::benchmark {
namespace {

constexpr const char* unordered_set = "std::unordered_set";

// "random, 2 words"
std::string data_name(const ResultRow& row) {
  auto words = static_cast<uint64_t>(row.number_of("words"));
  std::string name = row.text_of("data");
  if (words == 0) return name;
  return name + ", " + std::to_string(words) + (words == 1 ? " word" : " words");
}

// "stride:dense, 2 threads, 4 slots"
std::string line_name(const ResultRow& row) {
  auto bucket = static_cast<uint64_t>(row.number_of("bucket"));
  return row.engine_name() + (bucket ? ", " + std::to_string(bucket) + " slots" : "");
}

std::string gathers_cell(const ResultRow* row) {
  double gathers = row ? row->number_of("gathers_per_second") : 0;
  return gathers > 0 ? three_digits(100 * row->records_per_second() / gathers) : "-";
}

std::string number_cell(const ResultRow& row, const std::string& name) {
  return row.numbers.contains(name) ? three_digits(row.number_of(name)) : "-";
}

std::string count_cell(const ResultRow& row, const std::string& name) {
  if (!row.numbers.contains(name)) return "-";
  return with_commas(static_cast<uint64_t>(row.number_of(name)));
}

std::string dedup_rates(const RowGroup& rows) {
  TextTable table;
  table.add({"M vectors a second", "load", "find or put", "find", "get", "bytes a vector", "nodes",
             "put % gathers", "find % gathers", "put to std", "find to std"});
  table.add_rule();
  auto line = [](const ResultRow& row) {
    return line_name(row) + " " + std::to_string(row.number_of("load"));
  };
  std::vector<RowGroup> lines = groups_of(rows, line);
  RowGroup peer;
  for (const RowGroup& group : lines) {
    if (group[0]->engine == unordered_set) peer = group;
  }
  for (const RowGroup& group : lines) {
    const ResultRow &any = *group[0], *put = row_of_phase(group, "find_or_put");
    const ResultRow* found = row_of_phase(group, "find");
    bool ours = any.engine == "stride";
    table.add({line_name(any), number_cell(any, "load"), rate_cell(put), rate_cell(found),
               rate_cell(row_of_phase(group, "get")), number_cell(any, "bytes_per_vector"),
               count_cell(any, "nodes"), ours ? gathers_cell(put) : "-",
               ours ? gathers_cell(found) : "-",
               ours ? ratio_cell(put, row_of_phase(peer, "find_or_put")) : "-",
               ours ? ratio_cell(found, row_of_phase(peer, "find")) : "-"});
  }
  return table.to_string();
}

std::string sweep_table(const RowGroup& rows) {
  TextTable table;
  table.add({rows[0]->text_of("sweep"), "find or put", "ratio", "find", "ratio", "get", "ratio",
             "bytes a vector", "ratio"});
  table.add_rule();
  RowGroup usual;
  for (const ResultRow* row : rows) {
    if (row->number_of("is_default") == 1) usual.push_back(row);
  }
  for (const RowGroup& group :
       groups_of(rows, [](const ResultRow& row) { return row.text_of("value"); })) {
    bool is_default = group[0]->number_of("is_default") == 1;
    std::vector<std::string> cells = {group[0]->text_of("value") + (is_default ? " *" : "")};
    for (const char* phase : {"find_or_put", "find", "get"}) {
      cells.push_back(rate_cell(row_of_phase(group, phase)));
      cells.push_back(ratio_cell(row_of_phase(group, phase), row_of_phase(usual, phase)));
    }
    double bytes = group[0]->number_of("bytes_per_vector");
    cells.push_back(three_digits(bytes));
    cells.push_back(
        usual.empty() ? "-" : three_digits(bytes / usual[0]->number_of("bytes_per_vector")) + "x");
    table.add(cells);
  }
  return table.to_string();
}

// A name of the groups in a picture that says what not all rows share.
class DedupGroupNames {
 public:
  explicit DedupGroupNames(const std::vector<ResultRow>& rows) {
    std::set<std::string> data, sweeps;
    std::set<double> loads;
    for (const ResultRow& row : rows) {
      data.insert(data_name(row));
      if (row.numbers.contains("load")) loads.insert(row.number_of("load"));
    }
    with_data_ = data.size() > 1;
    with_load_ = loads.size() > 1;
  }
  std::string of(const ResultRow& row, const std::string& first) const {
    if (row.texts.contains("sweep")) {
      return first + (first.empty() ? "" : ", ") + row.text_of("sweep") + " " +
             row.text_of("value");
    }
    std::string name = first;
    auto add = [&](const std::string& text) { name += (name.empty() ? "" : ", ") + text; };
    if (with_data_) add(data_name(row));
    if (with_load_ && row.numbers.contains("load"))
      add("load " + three_digits(row.number_of("load")));
    return name;
  }

 private:
  bool with_data_, with_load_;
};

// The name that a row has in a picture.
void name_series(ResultRow* row) {
  auto bucket = static_cast<uint64_t>(row->number_of("bucket"));
  if (bucket && !row->texts.contains("sweep"))
    row->configuration += ", " + std::to_string(bucket) + " slots";
}

}  // namespace

std::string dedup_tables(const std::vector<ResultRow>& rows) {
  std::string text;
  for (const RowGroup& group : groups_of(all_of(rows), data_name)) {
    const ResultRow& any = *group[0];
    text += data_name(any) + ": " + with_commas(any.records) + " rows, " +
            with_commas(static_cast<uint64_t>(any.number_of("distinct"))) +
            " different, duplication " + three_digits(any.number_of("duplication")) + "\n" +
            dedup_rates(group) + "\n";
  }
  return text +
         "find or put: into an empty set; get: of the ids of all different vectors; load: share "
         "of\n"
         "slots taken in the end; % gathers: of the random accesses a second that memory as large\n"
         "as the set allows, of the same threads or device; to std: times std::unordered_set\n";
}

std::string dedup_sweep_tables(const std::vector<ResultRow>& rows) {
  std::string text;
  for (const RowGroup& group :
       groups_of(all_of(rows), [](const ResultRow& row) { return row.text_of("sweep"); })) {
    text += sweep_table(group) + "\n";
  }
  return text + "M vectors a second; * and ratio: the ordinary choice, and to it\n";
}

std::vector<ResultRow> dedup_rate_plot(const std::vector<ResultRow>& rows) {
  DedupGroupNames names(rows);
  std::vector<ResultRow> plot;
  for (ResultRow row : rows) {
    row.phase = names.of(row, phase_title(row.phase));
    name_series(&row);
    plot.push_back(std::move(row));
  }
  return plot;
}

std::vector<ResultRow> dedup_bytes_plot(const std::vector<ResultRow>& rows) {
  DedupGroupNames names(rows);
  std::vector<ResultRow> plot;
  for (ResultRow row : rows) {
    if (row.phase != "find_or_put") continue;
    row.phase = names.of(row, "");
    if (row.phase.empty()) row.phase = data_name(row);
    row.records = static_cast<uint64_t>(std::llround(row.number_of("bytes_per_vector") * 1e6));
    row.seconds = 1;
    name_series(&row);
    plot.push_back(std::move(row));
  }
  return plot;
}

}  // namespace stride::benchmark
