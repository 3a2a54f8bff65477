#include "storage/backup_list.h"

#include <charconv>
#include <cstdio>

#include "storage/checksum.h"
#include "storage/log_format.h"
#include "storage/manifest_format.h"

namespace stride {
namespace {

constexpr std::string_view first_words = "StrideDB backup ";
constexpr std::string_view backup_format = "1";
constexpr size_t checksum_digits = 16;

std::string hex(uint64_t n, int digits) {
  char text[17];
  std::snprintf(text, sizeof text, "%0*llx", digits, static_cast<unsigned long long>(n));
  return text;
}

bool is_database_file(std::string_view name) {
  return manifest_number(name) || segment_number(name) || log_number(name);
}

// Consumes the text up to `end`, which must be there.
std::optional<std::string_view> take(std::string_view* text, char end) {
  const size_t at = text->find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view taken = text->substr(0, at);
  text->remove_prefix(at + 1);
  return taken;
}

template <class Number>
bool parse(std::string_view text, int base, Number* number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool take_word(std::string_view* text, std::string_view word) {
  if (!text->starts_with(word)) return false;
  text->remove_prefix(word.size());
  return true;
}

bool take_file(std::string_view* text, BackupFile* file) {
  auto name = take(text, ' ');
  auto bytes = name ? take(text, ' ') : std::nullopt;
  auto checksum = bytes ? take(text, '\n') : std::nullopt;
  if (!checksum || !is_database_file(*name)) return false;
  file->name = *name;
  return parse(*bytes, 10, &file->bytes) && parse(*checksum, 16, &file->checksum);
}

}  // namespace

std::string BackupFile::stored_name() const { return name + "." + hex(checksum, checksum_digits); }

bool is_backup_file(std::string_view stored_name) {
  constexpr std::string_view unfinished = ".tmp";
  if (stored_name.ends_with(unfinished)) {
    stored_name.remove_suffix(unfinished.size());
    if (is_database_file(stored_name)) return true;
  }
  if (stored_name.size() <= checksum_digits + 1) return false;
  const size_t dot = stored_name.size() - checksum_digits - 1;
  const std::string_view digits = stored_name.substr(dot + 1);
  return stored_name[dot] == '.' &&
         digits.find_first_not_of("0123456789abcdef") == std::string_view::npos &&
         is_database_file(stored_name.substr(0, dot));
}

std::string encode_backup_list(const BackupList& list) {
  std::string text(first_words);
  text += std::string(backup_format) + "\nidentity " + hex(list.identity, 8) + "\n";
  text += list.complete ? "complete\n" : "begun\n";
  for (const BackupFile& file : list.files)
    text += "file " + file.name + " " + std::to_string(file.bytes) + " " +
            hex(file.checksum, checksum_digits) + "\n";
  return text + "checksum " + hex(checksum(as_bytes(text)), checksum_digits) + "\n";
}

std::optional<BackupList> decode_backup_list(std::string_view text) {
  const size_t last = text.rfind("checksum ");
  if (last == std::string_view::npos) return std::nullopt;
  std::string_view end = text.substr(last);
  text = text.substr(0, last);
  uint64_t sum = 0;
  if (!take_word(&end, "checksum ") || !end.ends_with('\n')) return std::nullopt;
  end.remove_suffix(1);
  if (!parse(end, 16, &sum) || sum != checksum(as_bytes(text))) return std::nullopt;
  BackupList list;
  if (!take_word(&text, first_words) || take(&text, '\n') != backup_format) return std::nullopt;
  if (!take_word(&text, "identity ")) return std::nullopt;
  auto identity = take(&text, '\n');
  if (!identity || !parse(*identity, 16, &list.identity)) return std::nullopt;
  list.complete = take_word(&text, "complete\n");
  if (!list.complete && !take_word(&text, "begun\n")) return std::nullopt;
  while (!text.empty()) {
    BackupFile file;
    if (!take_word(&text, "file ") || !take_file(&text, &file)) return std::nullopt;
    list.files.push_back(std::move(file));
  }
  return list;
}

Result<BackupList> read_backup_list(FileSystem& fs, const std::string& directory) {
  const std::string path = directory + "/" + std::string(backup_list_name);
  Result<std::string> text = read_file(fs, path);
  if (!text.ok()) return text.status();
  std::string_view words = *text;
  if (take_word(&words, first_words)) {
    auto format = take(&words, '\n');
    if (format && *format != backup_format)
      return Status(StatusCode::unsupported_version,
                    "the backup has format " + std::string(*format) + ", which is not known")
          .with_file(path)
          .with_remedy("use a newer StrideDB");
  }
  std::optional<BackupList> list = decode_backup_list(*text);
  if (list) return std::move(*list);
  return Status::corruption(path, 0, "the list of the backup is damaged")
      .with_remedy("make a backup in a new directory");
}

FileChange write_backup_list(FileSystem& fs, const std::string& directory, const BackupList& list) {
  return replace_file(fs, directory, std::string(backup_list_name), encode_backup_list(list));
}

}  // namespace stride
