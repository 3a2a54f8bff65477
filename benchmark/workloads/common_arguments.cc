#include "benchmark/workloads/common_arguments.h"

#include <CLI/CLI.hpp>

#include "benchmark/harness/machine.h"

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

void add_results(CLI::App* command, CommonArguments* common) {
  command->add_option("--repeat", common->repeats, "How often; medians are shown")
      ->check(CLI::Range(1u, 1000u))
      ->capture_default_str();
  command->add_option("--json", common->json, "File for the results as JSON rows");
  command->add_option("--plot", common->plot, "File for a plot of the results (SVG)");
}

void add_measuring(CLI::App* command, CommonArguments* common) {
  add_results(command, common);
  command->add_option("--threads", common->threads, "For lookups and loads; 0: one for each core")
      ->check(CLI::Range(0u, 4096u))
      ->capture_default_str();
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
  options->stride.backend = parse_backend(stride.backend);
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

BackendKind parse_backend(const std::string& name) {
  return name == "host"   ? BackendKind::host
         : name == "cuda" ? BackendKind::cuda
                          : BackendKind::automatic;
}

Result<std::unique_ptr<Backend>> make_backend(const std::string& name, unsigned threads) {
  if (name == "host") return Backend::host(threads);
  if (name == "cuda") return Backend::cuda({.host_threads = threads});
  return Backend::automatic(threads);
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

Status check_memory(uint64_t needed_bytes, const std::string& what, const std::string& remedy) {
  uint64_t memory = this_machine().memory_bytes;
  if (memory == 0 || needed_bytes < memory) return {};
  return Status(StatusCode::resource_exhausted,
                what + " take about " + std::to_string(needed_bytes >> 30) +
                    " GiB, and this machine has " + std::to_string(memory >> 30) + " GiB")
      .with_remedy(remedy);
}

}  // namespace stride::benchmark
