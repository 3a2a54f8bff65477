#include "benchmark/workloads/scatter/report.h"

#include <algorithm>
#include <set>

#include "benchmark/harness/arguments.h"
#include "benchmark/harness/row_groups.h"
#include "benchmark/harness/text_table.h"

namespace stride::benchmark {
namespace {

std::string count_name(double count) { return batch_name(static_cast<uint64_t>(count)); }

// "f32 add, u32 targets"
std::string kind_name(const ResultRow& row) {
  return row.text_of("type") + " " + row.text_of("operation") + ", " +
         (row.number_of("index_bytes") == 8 ? "u64" : "u32") + " targets";
}
// "100m to 10k, zipf:1.1"
std::string case_name(const ResultRow& row) {
  return count_name(static_cast<double>(row.records)) + " to " +
         count_name(row.number_of("targets")) + ", " + row.text_of("distribution");
}

// The row of one phase or that of prepared targets; null: there is none.
const ResultRow* find(const RowGroup& group, const std::string& phase,
                      const std::string& of_prepared) {
  auto row = std::find_if(group.begin(), group.end(), [&](const ResultRow* r) {
    return r->phase == phase || r->phase == of_prepared;
  });
  return row == group.end() || (*row)->seconds <= 0 ? nullptr : *row;
}

// Which columns there is something in.
struct Columns {
  bool stream = false, prepared = false, hash = false;

  explicit Columns(const RowGroup& rows) {
    for (const ResultRow* row : rows) {
      stream |= row->phase.ends_with("_stream");
      prepared |= row->phase == "prepare";
      hash |= row->texts.contains("hash");
    }
  }
};

std::string cell(const ResultRow* row, double value) { return row ? three_digits(value) : "-"; }
std::string milliseconds(const ResultRow* row) {
  return row ? three_digits(row->seconds * 1e3) : "-";
}
std::string rate(const ResultRow* row) {
  return row ? three_digits(row->records_per_second() / 1e9) : "-";
}
std::string number_cell(const ResultRow* row, const std::string& name, double factor,
                        const char* unit = "") {
  if (!row || !row->numbers.contains(name)) return "-";
  return cell(row, row->number_of(name) * factor) + unit;
}
std::string peer_ratio_cell(const ResultRow* row) {
  if (!row) return "-";
  for (const char* name : {"to_loop", "to_direct"})
    if (row->numbers.contains(name)) return number_cell(row, name, 1, "x");
  return "-";
}

std::vector<std::string> line(const RowGroup& rows, const Columns& columns) {
  const ResultRow* call = find(rows, "scatter", "apply");
  const ResultRow* stream = find(rows, "scatter_stream", "apply_stream");
  // Where there is a stream, it tells more about the work, and less about waiting for it.
  const ResultRow* work = stream ? stream : call;
  std::vector<std::string> cells = {"  " + rows[0]->engine_name(), rate(call), milliseconds(call)};
  if (columns.stream) {
    cells.push_back(rate(stream));
    cells.push_back(milliseconds(stream));
  }
  if (columns.prepared) cells.push_back(milliseconds(find(rows, "prepare", "prepare")));
  cells.push_back(number_cell(work, "bytes_per_second", 1e-9));
  cells.push_back(number_cell(work, "bound_seconds", 1e3));
  cells.push_back(number_cell(work, "bound_percent", 1));
  cells.push_back(peer_ratio_cell(work));
  if (columns.hash) cells.push_back(call ? call->text_of("hash") : "");
  return cells;
}

std::string table_of(const RowGroup& rows) {
  Columns columns(rows);
  TextTable table;
  std::vector<std::string> header = {kind_name(*rows[0]), "G/s", "ms"};
  if (columns.stream) header.insert(header.end(), {"stream G/s", "stream ms"});
  if (columns.prepared) header.push_back("prepare ms");
  header.insert(header.end(), {"GB/s", "bound ms", "% bound", "ratio"});
  if (columns.hash) header.push_back("hash of T");
  table.add(header);
  table.add_rule();
  for (const RowGroup& data : groups_of(rows, case_name)) {
    table.add({case_name(*data[0])});
    for (const RowGroup& one : groups_of(data, [](const ResultRow& r) { return r.engine_name(); }))
      table.add(line(one, columns));
  }
  std::set<std::string> refused;
  for (const ResultRow* row : rows) {
    std::string why = row->text_of("refused");
    if (!why.empty()) refused.insert(row->text_of("method") + ": " + why);
  }
  std::string text = table.to_string();
  for (const std::string& why : refused) text += why + "\n";
  return text;
}

// Adds what differs among the rows to the name of a group of bars.
class ScatterGroupNames {
 public:
  explicit ScatterGroupNames(const std::vector<ResultRow>& rows) {
    std::set<std::string> kinds, sizes;
    for (const ResultRow& row : rows) {
      kinds.insert(kind_name(row));
      sizes.insert(size_name(row));
    }
    with_kind_ = kinds.size() > 1;
    with_size_ = sizes.size() > 1;
  }
  std::string of(const ResultRow& row) const {
    return row.text_of("distribution") + (with_size_ ? " " + size_name(row) : "") +
           (with_kind_ ? ", " + kind_name(row) : "");
  }

 private:
  static std::string size_name(const ResultRow& row) {
    return count_name(static_cast<double>(row.records)) + " to " +
           count_name(row.number_of("targets"));
  }
  bool with_kind_, with_size_;
};

}  // namespace

std::string scatter_tables(const std::vector<ResultRow>& rows) {
  std::string text;
  for (const RowGroup& group : groups_of(all_of(rows), kind_name)) text += table_of(group) + "\n";
  return text +
         "G/s: 10^9 sources a second, of a call that is waited for; stream: of one of many that "
         "are "
         "not;\n"
         "GB/s: of S and R; bound: reading them once at the measured speed of copies there (from "
         "the\n"
         "host: of the bus); ratio: to the loop, on a device to `fast, direct`; with a stream "
         "these "
         "are\n"
         "its figures. Every T was checked.\n";
}

std::vector<ResultRow> scatter_plot(const std::vector<ResultRow>& rows) {
  ScatterGroupNames names(rows);
  std::vector<ResultRow> plot;
  for (ResultRow row : rows) {
    if (row.phase == "prepare" || row.seconds <= 0) continue;
    if (row.phase.ends_with("_stream")) row.configuration += ", stream";
    row.phase = names.of(row);
    plot.push_back(std::move(row));
  }
  return plot;
}

}  // namespace stride::benchmark
