#include "benchmark/harness/common_arguments.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <fstream>
#include <iostream>

#include "benchmark/harness/machine.h"
#include "benchmark/harness/plot.h"

namespace stride::benchmark {
namespace {

std::string engines_help() {
  std::string text =
      "Engines to compare, with commas between; an engine's name means all its "
      "configurations:";
  for (const EngineConfiguration& e : all_engines()) {
    text += "\n  " + e.name() + ": " + e.description;
  }
  return text;
}

}  // namespace

void add_measuring(CLI::App* command, CommonArguments* common) {
  command->add_option("--repeat", common->repeats, "How often; medians are shown")
      ->check(CLI::Range(1u, 1000u))
      ->capture_default_str();
  command->add_option("--threads", common->threads, "For lookups and loads; 0: one for each core")
      ->check(CLI::Range(0u, 4096u))
      ->capture_default_str();
  command->add_option("--json", common->json, "File for the results as JSON rows");
  command->add_option("--plot", common->plot, "File for a plot of the results (SVG)");
}

void add_directory(CLI::App* command, CommonArguments* common) {
  command
      ->add_option("--directory", common->directory,
                   "Where the databases are made, each in a new directory that is removed")
      ->capture_default_str();
}

void add_common(CLI::App* command, CommonArguments* common) {
  command->add_option("--engines", common->engines, engines_help())->capture_default_str();
  command
      ->add_option("--durability", common->durability,
                   "What a commit survives: sync (power loss), flush (a killed process), none")
      ->check(CLI::IsMember({"sync", "flush", "none"}))
      ->capture_default_str();
  add_directory(command, common);
  add_measuring(command, common);
}

void add_backend(CLI::App* command, StrideArguments* stride) {
  command
      ->add_option("--backend", stride->backend,
                   "Of StrideDB: host; cuda: a device, which has to be there; auto: a device where "
                   "there is one and a batch is large enough")
      ->check(CLI::IsMember({"auto", "host", "cuda"}))
      ->capture_default_str();
}

void add_stride(CLI::App* command, StrideArguments* stride) {
  add_backend(command, stride);
  command
      ->add_option("--values", stride->values,
                   "Of StrideDB: where values are kept besides the files, for batches that a "
                   "device searches")
      ->check(CLI::IsMember({"host", "device"}))
      ->capture_default_str();
}

Status parse_engines(const CommonArguments& common, const StrideArguments& stride,
                     EngineWorkloadOptions* options) {
  Result<std::vector<EngineConfiguration>> engines = choose_engines(common.engines);
  if (!engines.ok()) return engines.status();
  options->engines = *engines;
  options->durability = parse_durability(common.durability);
  options->stride.backend = stride.backend == "host"   ? BackendKind::host
                            : stride.backend == "cuda" ? BackendKind::cuda
                                                       : BackendKind::automatic;
  options->stride.value_placement =
      stride.values == "device" ? ValuePlacement::device : ValuePlacement::host;
  options->repeats = common.repeats;
  options->threads = chosen_threads(common);
  options->directory = common.directory;
  return {};
}

Durability parse_durability(const std::string& name) {
  return name == "sync" ? Durability::sync : name == "flush" ? Durability::flush : Durability::none;
}

unsigned chosen_threads(const CommonArguments& common) {
  return common.threads ? common.threads : this_machine().cores;
}

std::string stride_title(const StrideArguments& stride) {
  std::string title;
  if (stride.backend != "auto") title += ", backend " + stride.backend;
  if (stride.values != "host") title += ", values on the device";
  return title;
}

Status check_output_files(const CommonArguments& common) {
  for (const std::string& path : {common.json, common.plot}) {
    if (path.empty()) continue;
    if (!std::ofstream(path, std::ios::app)) return Status::from_errno(errno, "open", path);
  }
  return {};
}

Status check_memory(uint64_t needed_bytes, const std::string& what, const std::string& remedy) {
  uint64_t memory = this_machine().memory_bytes;
  if (memory == 0 || needed_bytes < memory) return {};
  return Status(StatusCode::resource_exhausted,
                what + " take about " + std::to_string(needed_bytes >> 30) +
                    " GiB, and this machine has " + std::to_string(memory >> 30) + " GiB")
      .with_remedy(remedy);
}

Status write_files(const CommonArguments& common, const std::string& title,
                   const std::vector<ResultRow>& rows, const std::vector<ResultRow>& plot_rows) {
  if (!common.json.empty()) STRIDE_TRY(write_json(common.json, rows));
  if (!common.plot.empty()) STRIDE_TRY(write_text_file(common.plot, plot_svg(title, plot_rows)));
  return {};
}

Status show(const CommonArguments& common, const std::string& title,
            const std::vector<ResultRow>& all_rows, const std::string& note) {
  std::vector<ResultRow> rows = medians(all_rows);
  std::string tables = comparison(rows);
  for (const std::string& line : {rocksdb_note(), note}) {
    if (!line.empty()) tables += "\n" + line + "\n";
  }
  print_tables(title, tables);
  return write_files(common, title, rows, rows);
}

void print_tables(const std::string& title, const std::string& tables) {
  std::cout << title << "\n" << this_machine().to_string() << "\n\n" << tables << std::flush;
}

Progress terminal_progress() { return Progress(isatty(STDERR_FILENO) != 0); }

}  // namespace stride::benchmark
