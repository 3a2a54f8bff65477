#include "benchmark/workloads/measurement.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "benchmark/harness/machine.h"

namespace stride::benchmark {
namespace {

Status check_output_files(const CommonArguments& common,
                          const std::vector<OutputFile>& files = {}) {
  std::vector<std::string> paths = {common.json, common.plot};
  for (const OutputFile& file : files) paths.push_back(file.path);
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    if (!std::ofstream(path, std::ios::app)) return Status::from_errno(errno, "open", path);
  }
  return {};
}

// "a/b.svg", "-bytes" -> "a/b-bytes.svg"
std::string with_suffix(const std::string& path, const std::string& suffix) {
  std::filesystem::path made(path);
  made.replace_filename(made.stem().string() + suffix + made.extension().string());
  return made.string();
}

void print_tables(const std::string& title, const std::string& tables) {
  std::cout << title << "\n" << this_machine().to_string() << "\n\n" << tables << std::flush;
}

// Writes the files that were asked for.
Status write_files(const CommonArguments& common, const std::string& title, const ResultRows& rows,
                   const std::vector<Plot>& plots) {
  if (!common.json.empty()) STRIDE_TRY(write_json(common.json, rows));
  if (common.plot.empty()) return {};
  for (const Plot& plot : plots) {
    const std::string svg =
        plot.draw ? plot.draw(title, rows) : plot_svg(title, plot.rows(rows), plot.axis);
    STRIDE_TRY(write_text_file(with_suffix(common.plot, plot.suffix), svg));
  }
  return {};
}

}  // namespace

Status measure_and_show(const CommonArguments& common, const Measurement& measurement) {
  STRIDE_TRY(check_output_files(common, measurement.files));
  ResultRows rows;
  STRIDE_TRY(measurement.run(terminal_progress(), &rows));
  print_tables(measurement.title, measurement.tables(rows));
  for (const OutputFile& file : measurement.files)
    if (!file.path.empty()) STRIDE_TRY(write_text_file(file.path, file.text()));
  return write_files(common, measurement.title, rows, measurement.plots);
}

Status measure_and_compare(const CommonArguments& common, const std::string& title,
                           const MeasureRows& run,
                           const std::function<std::string(const ResultRows&)>& note,
                           const std::vector<Plot>& plots) {
  STRIDE_TRY(check_output_files(common));
  ResultRows all_rows;
  STRIDE_TRY(run(terminal_progress(), &all_rows));
  ResultRows rows = medians(all_rows);
  std::string tables = comparison(rows);
  for (const std::string& line : {rocksdb_note(), note ? note(all_rows) : std::string()}) {
    if (!line.empty()) tables += "\n" + line + "\n";
  }
  print_tables(title, tables);
  std::vector<Plot> all_plots = {{.rows = [](const ResultRows& all) { return all; }}};
  all_plots.insert(all_plots.end(), plots.begin(), plots.end());
  return write_files(common, title, rows, all_plots);
}

}  // namespace stride::benchmark
