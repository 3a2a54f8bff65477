#include "benchmark/workloads/gpus/report.h"

#include <algorithm>
#include <set>

#include "benchmark/harness/report_cells.h"
#include "benchmark/harness/text_table.h"

namespace stride::benchmark {
namespace {

const ResultRow* find_row(const std::vector<ResultRow>& rows, const std::string& phase,
                          double devices) {
  auto row = std::find_if(rows.begin(), rows.end(), [&](const ResultRow& r) {
    return r.phase == phase && r.number_of("devices") == devices;
  });
  return row == rows.end() ? nullptr : &*row;
}

std::string percent_cell(const ResultRow* row) {
  const double limit = row ? row->number_of("limit_per_second") : 0;
  return limit > 0 ? three_digits(100 * row->records_per_second() / limit) : "-";
}

std::vector<std::string> phases_of(const std::vector<ResultRow>& rows) {
  std::vector<std::string> phases;
  for (const ResultRow& row : rows)
    if (std::find(phases.begin(), phases.end(), row.phase) == phases.end())
      phases.push_back(row.phase);
  return phases;
}

std::string links_line(const std::vector<ResultRow>& rows) {
  std::string text;
  std::set<double> told;
  for (const ResultRow& row : rows) {
    if (!told.insert(row.number_of("devices")).second) continue;
    text += row.configuration + ": the bus " +
            three_digits(row.number_of("bus_both_bytes_per_second") / 1e9) +
            " GB/s each way, both at once, " +
            three_digits(row.number_of("bus_out_bytes_per_second") / 1e9) + " GB/s out alone";
    if (const double link = row.number_of("link_bytes_per_second"); link > 0)
      text += "; from the first device to the second " + three_digits(link / 1e9) + " GB/s";
    text += "\n";
  }
  return text;
}

}  // namespace

std::string gpus_tables(const std::vector<ResultRow>& all) {
  const std::vector<ResultRow> rows = medians(all);
  std::set<double> counts;
  for (const ResultRow& row : rows) counts.insert(row.number_of("devices"));
  TextTable table;
  std::vector<std::string> header = {"M a second"};
  for (double devices : counts) {
    const std::string number = std::to_string(static_cast<uint64_t>(devices));
    header.push_back(number + (devices == 1 ? " device" : " devices"));
    header.push_back("% of model");
    if (devices != 1) header.push_back(number + " to 1");
  }
  table.add(header);
  table.add_rule();
  for (const std::string& phase : phases_of(rows)) {
    std::vector<std::string> cells = {phase_title(phase)};
    for (double devices : counts) {
      const ResultRow* row = find_row(rows, phase, devices);
      cells.push_back(rate_cell(row));
      cells.push_back(percent_cell(row));
      if (devices != 1) cells.push_back(ratio_cell(row, find_row(rows, phase, 1)));
    }
    table.add(cells);
  }
  return table.to_string() + "\n" + links_line(rows) +
         "devices: queries and answers are spread over the memory of the devices; first: they lie\n"
         "in that of the first device; pinned and host: in host memory. The model: devices times\n"
         "what one of them searches in its own memory, and no more than the bus of all of them,\n"
         "or the link from the first device, carries of queries (of get: of values).\n";
}

std::vector<ResultRow> gpus_plot_rows(const std::vector<ResultRow>& rows) { return medians(rows); }

}  // namespace stride::benchmark
