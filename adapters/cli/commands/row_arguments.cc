#include "adapters/cli/commands/row_arguments.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <limits>

#include "adapters/cli/input/arrow_rows.h"
#include "adapters/cli/input/pipeline.h"

namespace stride::cli {

namespace {

// "12" or "12k" as a plain number; false where it is none of 64 bits.
bool plain_count(const std::string& text, uint64_t* count) {
  static const std::map<char, uint64_t> units = {{'k', 1000}, {'m', 1000000}, {'g', 1000000000}};
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, *count);
  if (error != std::errc() || rest == end) return error == std::errc() && !text.empty();
  auto unit = units.find(static_cast<char>(*rest | 0x20));
  return unit != units.end() && rest + 1 == end &&
         !__builtin_mul_overflow(*count, unit->second, count);
}

// advice: what to give in the place of nothing.
CLI::Validator not_empty(const std::string& advice) {
  return CLI::Validator(
      [advice](std::string& text) { return text.empty() ? "it is empty: " + advice : ""; }, "");
}

CLI::Option* read_as_count(CLI::Option* option) {
  CLI::Validator plain(
      [](std::string& text) {
        uint64_t count = 0;
        if (!plain_count(text, &count))
          return "'" + text +
                 "' is no number from 0 to 18446744073709551615 (k, m and g behind it are "
                 "thousands, millions and billions): give such a number";
        text = std::to_string(count);
        return std::string();
      },
      "");
  return option->transform(plain)->type_name("N");
}

}  // namespace

void add_count(CLI::App* command, const std::string& name, uint64_t* count,
               const std::string& help) {
  read_as_count(command->add_option(name, *count, help));
}

void add_count(CLI::App* command, const std::string& name, std::optional<uint64_t>* count,
               const std::string& help) {
  read_as_count(command->add_option(name, *count, help));
}

void add_key_type(CLI::App* command, std::string* key_type) {
  command
      ->add_option(
          "--key-type", *key_type,
          "How keys are written: bytes (as they are), numbers that sort as such (u8 to u64, i8 to "
          "i64, f32, f64), date, timestamp, uuid, string, hex, ip (IPv4: 4 bytes, IPv6: 16), "
          "prefix "
          "(10.0.0.0/8, 2001:db8::/32 or hex/length; of a prefix table), or several with commas "
          "between, of keys of several columns. Default: what the table was loaded with; else "
          "bytes, or hex where every key has the same width")
      ->check([](const std::string& text) {
        return key_form_named(text) ? std::string()
                                    : "'" + text +
                                          "' is no type of keys: give bytes, u8 to u64, i8 to i64, "
                                          "f32, f64, bool, date, timestamp, uuid, string, hex, ip, "
                                          "prefix, or several of these types with commas between";
      })
      ->type_name("TYPE");
}

namespace {

// kind: what the names of options that commands also have for their output begin with.
void add_row_format(CLI::App* command, RowArguments* a, const std::string& kind,
                    const std::string& formats) {
  a->row_options = true;
  command
      ->add_option("--" + kind + "format", a->format,
                   "Of the files: " + formats + ". Default: by the first file's name, else tsv")
      ->check(CLI::IsMember({"tsv", "csv", "jsonl", "raw", "parquet", "arrow"}))
      ->type_name("FORMAT");
  command
      ->add_option(
          "--key", a->key,
          "The column with the key: its number from 1, its name in the header, or the field "
          "of a JSON object; or several with commas between. Default: the first ones, the "
          "field \"key\"")
      ->check(not_empty("name a column"))
      ->type_name("COLUMN");
  command
      ->add_option("--" + kind + "delimiter", a->delimiter,
                   "Between columns. Default: a tab (tsv), a comma, or what the rows tell (csv)")
      ->type_name("BYTE");
  CLI::Option* header =
      command->add_flag("--" + kind + "header", a->header,
                        "The first row of each file names the columns. Default: as the rows tell");
  command->add_flag("--no-" + kind + "header", a->no_header, "It does not")->excludes(header);
  command
      ->add_option(
          "--line-ends", a->line_ends,
          "auto: as the first line of a file ends, all others have to; any: LF and CRLF mixed; "
          "lf: a CR is data")
      ->check(CLI::IsMember({"auto", "lf", "crlf", "any"}))
      ->capture_default_str()
      ->type_name("KIND");
  command->add_option("--compressed", a->compressed, "auto: by a file's first bytes; none, gz, zst")
      ->check(CLI::IsMember({"auto", "none", "gz", "zst"}))
      ->capture_default_str()
      ->type_name("KIND");
  command
      ->add_option(
          "--rejects", a->rejects,
          "File for rows that cannot be read: file, line, reason and row, with tabs between")
      ->check(not_empty("name a file"))
      ->type_name("FILE");
  add_count(command, "--max-rejects", &a->max_rejects,
            "So many bad rows are left out before the job ends. Default: 0, or any number with "
            "--rejects");
  add_count(command, "--max-row-bytes", &a->max_row_bytes,
            "A longer row is a bad row (default 64 MiB)");
  add_block_bytes(command, a);
}

}  // namespace

void add_row_options(CLI::App* command, RowArguments* a, const std::string& formats) {
  add_row_format(command, a, "", formats);
  add_key_type(command, &a->key_type);
  command->add_option("--threads", a->threads, "That parse and look up; 0: one for each core")
      ->check(CLI::Range(0u, 1024u))
      ->capture_default_str()
      ->type_name("N");
}

void add_keys_options(CLI::App* command, RowArguments* a, const std::string& what) {
  command
      ->add_option("--keys", a->keys,
                   "File with " + what +
                       " a line, or in its first column or the one of --key, of any "
                       "format; -: standard input")
      ->check(not_empty("name a file"))
      ->type_name("FILE");
  a->sniffs = true;
  add_row_format(command, a, "keys-", "tsv, csv, jsonl, parquet, arrow");
}

void add_block_bytes(CLI::App* command, RowArguments* a) {
  add_count(command, "--block-bytes", &a->block_bytes, "Of input that a thread takes at a time");
  command->get_option("--block-bytes")->group("")->check(CLI::Range(1u, 1u << 30));
}

ExitStatus find_format(const std::string& name, const std::string& file, Format* format) {
  const bool columnar = name == "parquet" || name == "arrow";
  if (columnar && file != "-" && access(file.c_str(), F_OK) != 0)
    return ExitStatus::from_errno(errno, file, "open");
  *format = name == "csv"       ? Format::csv
            : name == "jsonl"   ? Format::jsonl
            : name == "raw"     ? Format::raw
            : name == "parquet" ? Format::parquet
            : name == "arrow"   ? Format::arrow
                                : Format::tsv;
  if (!is_columnar(*format) || BatchFile::available()) return {};
  return ExitStatus(ExitCode::unavailable,
                    file + ": this program reads no " + name +
                        " files: write them as CSV or JSON lines first, and give --format");
}

ExitStatus parse_row_options(const RowArguments& a, const std::string& first_file,
                             RowOptions* options) {
  std::string format = a.format.empty() ? format_of_file(first_file) : a.format;
  STRIDE_CLI_TRY(find_format(format, first_file, &options->format));
  options->delimiter = options->format == Format::csv ? ',' : '\t';
  if (!a.delimiter.empty()) STRIDE_CLI_TRY(parse_delimiter(a.delimiter, &options->delimiter));
  bool columns = options->format == Format::tsv || options->format == Format::csv;
  if (a.header && !columns)
    return ExitStatus::usage("--header is for tsv and csv, and the format is " + format +
                             ": leave it out, or give another --format");
  options->header = a.header;
  options->sniffs_header = a.sniffs && columns && !a.header && !a.no_header;
  options->sniffs_delimiter = a.sniffs && options->format == Format::csv && a.delimiter.empty();
  options->line_ends = a.line_ends == "lf"     ? LineEnds::lf
                       : a.line_ends == "crlf" ? LineEnds::crlf
                       : a.line_ends == "any"  ? LineEnds::any
                                               : LineEnds::automatic;
  options->compression = a.compressed == "none"  ? Compression::none
                         : a.compressed == "gz"  ? Compression::gzip
                         : a.compressed == "zst" ? Compression::zstd
                                                 : Compression::automatic;
  options->key = a.key;
  options->values = a.values;
  options->allow_empty_key = a.allow_empty_key;
  bool fixed = a.key_bytes != 0 || a.value_bytes != 0;
  if (fixed && options->format != Format::raw)
    return ExitStatus::usage("--key-bytes and --value-bytes are for --format raw");
  if (fixed && a.key_bytes == 0) return ExitStatus::usage("--value-bytes needs --key-bytes");
  options->raw_key_bytes = a.key_bytes;
  options->raw_value_bytes = a.value_bytes;
  if (a.max_row_bytes == 0 || a.max_row_bytes > (1u << 31))
    return ExitStatus::usage("--max-row-bytes must be a number from 1 to 2147483648");
  options->block_bytes = a.block_bytes;
  options->max_row_bytes = a.max_row_bytes;
  return {};
}

unsigned chosen_threads(const RowArguments& a) {
  return a.threads ? a.threads : available_threads();
}

uint64_t rejects_allowed(const RowArguments& a) {
  if (a.max_rejects) return *a.max_rejects;
  return a.rejects.empty() ? 0 : std::numeric_limits<uint64_t>::max();
}

}  // namespace stride::cli
