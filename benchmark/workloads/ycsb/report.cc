#include "benchmark/workloads/ycsb/report.h"

#include <algorithm>
#include <cstdio>

#include "benchmark/harness/line_plot.h"
#include "benchmark/harness/machine.h"
#include "benchmark/harness/text_table.h"
#include "benchmark/harness/timed_phases.h"
#include "benchmark/workloads/ycsb/mix.h"

namespace stride::benchmark {
namespace {

std::string ratio_of(double over, double under) {
  return over > 0 && under > 0 ? three_digits(over / under) : "-";
}

const ResultRow* find_phase(const std::vector<ResultRow>& rows, const ResultRow& run,
                            const std::string& suffix) {
  for (const ResultRow& row : rows)
    if (row.engine_name() == run.engine_name() && row.phase == run.phase + suffix) return &row;
  return nullptr;
}

bool is_run(const ResultRow& row) { return row.numbers.contains("user_bytes_written"); }

// The phases of all runs, in their order.
std::vector<std::string> run_phases(const std::vector<ResultRow>& rows) {
  std::vector<std::string> phases;
  for (const ResultRow& row : rows)
    if (is_run(row) && std::ranges::find(phases, row.phase) == phases.end())
      phases.push_back(row.phase);
  return phases;
}

std::string run_title(const ResultRow& run) {
  std::string title = run.text_of("ycsb");
  for (const YcsbMix& mix : ycsb_mixes())
    if (mix.name == run.text_of("ycsb")) title += ": " + mix.description;
  return title + "; " + (run.text_of("keys") == "rounds" ? "" : run.text_of("keys") + ", ") +
         threads_name(static_cast<unsigned>(run.number_of("threads")));
}

std::vector<std::string> rate_cells(const std::vector<ResultRow>& rows, const ResultRow& run) {
  const ResultRow* load = find_phase(rows, run, "_load");
  const double user = run.number_of("user_bytes_written");
  const auto live = static_cast<double>(run.raw_bytes);
  return {run.engine_name(),
          load ? three_digits(load->records_per_second() / 1e3) : "-",
          three_digits(run.records_per_second() / 1e3),
          ratio_of(static_cast<double>(run.records) / 1e3, run.number_of("cpu_seconds")),
          three_digits(run.number_of("close_seconds") * 1e3),
          three_digits(run.number_of("open_seconds") * 1e3),
          ratio_of(static_cast<double>(run.bytes_on_disk), live),
          ratio_of(run.number_of("most_bytes_on_disk"), live),
          ratio_of(run.number_of("storage_bytes_written"), user),
          ratio_of(run.number_of("call_bytes_written"), user)};
}

// StrideDB's rate to the best of the peers'.
std::string best_ratio(const std::vector<const ResultRow*>& runs) {
  double ours = 0, best = 0;
  std::string peer;
  for (const ResultRow* run : runs) {
    const double rate = run->records_per_second();
    if (run->engine == "stride") ours = std::max(ours, rate);
    if (run->engine == "stride" || rate <= best) continue;
    best = rate;
    peer = run->engine_name();
  }
  if (ours <= 0 || best <= 0) return "";
  return "stride to the best peer, " + peer + ": " + three_digits(ours / best) + "x\n";
}

std::string latency_table_of(const std::vector<const ResultRow*>& runs) {
  TextTable table;
  table.add({"one call, us", "operation", "calls", "p50", "p99", "p99.9", "max"});
  table.add_rule();
  for (size_t kind = 0; kind < operation_kinds; ++kind)
    for (const ResultRow* run : runs) {
      const std::string name = operation_name(static_cast<Operation>(kind));
      if (!run->numbers.contains(name + "_calls")) continue;
      std::vector<std::string> cells = {run->engine_name(), name};
      cells.push_back(std::to_string(static_cast<uint64_t>(run->number_of(name + "_calls"))));
      for (const char* column : {"_p50_us", "_p99_us", "_p999_us", "_max_us"})
        cells.push_back(three_digits(run->number_of(name + column)));
      table.add(cells);
    }
  return table.to_string();
}

std::string tables_of_phase(const std::vector<ResultRow>& rows, const std::string& phase) {
  std::vector<const ResultRow*> runs;
  for (const ResultRow& row : rows)
    if (row.phase == phase && is_run(row)) runs.push_back(&row);
  TextTable table;
  table.add({"", "load k/s", "run k/s", "k/cpu s", "close ms", "open ms", "size", "most", "disk",
             "calls"});
  table.add_rule();
  for (const ResultRow* run : runs) table.add(rate_cells(rows, *run));
  return run_title(*runs[0]) + "\n\n" + table.to_string() + best_ratio(runs) + "\n" +
         latency_table_of(runs) + "\n";
}

std::string format(const char* how, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), how, value);
  return text;
}

// In an interval, of which the last one is shorter.
double interval_end(const YcsbSeries& series, size_t i) {
  return std::min(series.interval_seconds * static_cast<double>(i + 1), series.seconds);
}
double interval_rate(const YcsbSeries& series, size_t i) {
  const double seconds = interval_end(series, i) - series.interval_seconds * static_cast<double>(i);
  return seconds > 0 ? static_cast<double>(series.intervals[i].operations) / seconds : 0;
}

LineSeries rate_line(const YcsbSeries& series) {
  LineSeries line{series.store, series.store.substr(0, series.store.find(':')), {}};
  for (size_t i = 0; i < series.intervals.size(); ++i) {
    const bool is_short =
        interval_end(series, i) < series.interval_seconds * (static_cast<double>(i) + 0.5);
    // The rate of a few calls says nothing.
    if (is_short && i > 0) break;
    line.points.emplace_back(interval_end(series, i), interval_rate(series, i) / 1e3);
  }
  return line;
}

}  // namespace

std::string ycsb_tables(const std::vector<ResultRow>& all_rows) {
  const std::vector<ResultRow> rows = medians(all_rows);
  std::string text;
  for (const std::string& phase : run_phases(rows)) text += tables_of_phase(rows, phase);
  return text +
         "k/s: thousands of operations a second; k/cpu s: a second of processor time, of all "
         "threads.\n"
         "open: reopening, with what the log asks for. size: of the closed store's files, most: "
         "at\n"
         "any time of the run; as a multiple of all keys and values that are there at the end.\n"
         "disk: bytes that the kernel wrote to a disk for this process, - in memory; calls: bytes\n"
         "given to write calls; each as a multiple of all keys and values that were put.\n";
}

std::string ycsb_series_csv(const std::vector<YcsbSeries>& series) {
  std::string text =
      "workload,threads,store,repeat,seconds,operations_per_second,p99_us,max_us,directory_bytes\n";
  for (const YcsbSeries& s : series)
    for (size_t i = 0; i < s.intervals.size(); ++i) {
      const YcsbInterval& interval = s.intervals[i];
      text += s.workload + "," + std::to_string(s.threads) + "," + s.store + "," +
              std::to_string(s.repeat) + "," + format("%.3f", interval_end(s, i)) + "," +
              format("%.1f", interval_rate(s, i)) + "," + format("%.3f", interval.p99_us) + "," +
              format("%.3f", interval.max_us) + "," + std::to_string(interval.directory_bytes) +
              "\n";
    }
  return text;
}

std::string ycsb_series_svg(const std::string& title, const std::vector<YcsbSeries>& series) {
  std::vector<LinePanel> panels;
  for (const YcsbSeries& s : series) {
    if (s.repeat > 0) continue;
    const std::string name = s.workload + ", " + threads_name(s.threads);
    auto panel = std::ranges::find(panels, name, &LinePanel::title);
    if (panel == panels.end())
      panel = panels.insert(panels.end(), {name, "seconds", "thousand operations a second", {}});
    panel->series.push_back(rate_line(s));
  }
  return line_plot_svg(title, this_machine().to_string(), panels);
}

}  // namespace stride::benchmark
