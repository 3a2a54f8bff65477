#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <unistd.h>
#include <wchar.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "adapters/cli/interrupt.h"
#include "adapters/cli/shell/line_source.h"
#include "adapters/cli/shell/words.h"

namespace stride::cli {
namespace {

using Names = std::vector<std::string>;

// The characters of the user's language, or UTF-8, for this thread and as long as it lives. The
// rest of the program knows bytes only.
class Characters {
 public:
  Characters() : locale_(newlocale(LC_CTYPE_MASK, "", nullptr)) {
    if (locale_ && std::strcmp(nl_langinfo_l(CODESET, locale_), "ANSI_X3.4-1968") == 0) {
      freelocale(locale_);
      locale_ = nullptr;
    }
    if (!locale_) locale_ = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    if (locale_) before_ = uselocale(locale_);
  }
  ~Characters() {
    if (!locale_) return;
    uselocale(before_);
    freelocale(locale_);
  }
  Characters(const Characters&) = delete;
  Characters& operator=(const Characters&) = delete;

 private:
  locale_t locale_, before_{};
};

// As long as it lives, a process that was stopped and goes on comes back from its read: the
// terminal is prepared anew then.
class WakesUp {
 public:
  WakesUp() {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    sigaction(SIGCONT, &action, &before_);
  }
  ~WakesUp() { sigaction(SIGCONT, &before_, nullptr); }
  WakesUp(const WakesUp&) = delete;
  WakesUp& operator=(const WakesUp&) = delete;

 private:
  struct sigaction before_ {};
};

int characters_of(std::string_view text) {
  mbstate_t state{};
  int count = 0;
  while (!text.empty()) {
    const size_t n = mbrlen(text.data(), text.size(), &state);
    text.remove_prefix(n == 0 || n > text.size() ? 1 : n);
    ++count;
  }
  return count;
}

// What all of the names begin with.
std::string common_beginning(const Names& names) {
  std::string common = names.front();
  for (const std::string& name : names) {
    const size_t most = std::min(common.size(), name.size());
    size_t same = 0;
    while (same < most && common[same] == name[same]) ++same;
    common.resize(same);
  }
  return common;
}

class EditedLines final : public LineSource {
 public:
  EditedLines(const Terminal& terminal, HistoryFile file,
              std::function<Completion(std::string_view)> complete)
      : prompt_(terminal.prompt), file_(std::move(file)), complete_(std::move(complete)) {
    in_ = fdopen(dup(terminal.in), "r");
    out_ = fdopen(dup(terminal.out), "w");
    if (!in_ || !out_) return;
    const Characters characters;
    edit_ = el_init("stride", in_, out_, out_);
    history_ = history_init();
    if (!edit_ || !history_) return;
    HistEvent event;
    history(history_, &event, H_SETSIZE, static_cast<int>(HistoryFile::max_lines));
    history(history_, &event, H_SETUNIQUE, 1);
    for (const std::string& line : file_.read()) history(history_, &event, H_ENTER, line.c_str());
    el_set(edit_, EL_CLIENTDATA, this);
    el_set(edit_, EL_PROMPT, &prompt_of);
    el_set(edit_, EL_EDITOR, "emacs");
    el_set(edit_, EL_HIST, history, history_);
    // el_set() would copy both texts and never free them.
    el_wset(edit_, EL_ADDFN, L"stride-complete", L"Complete the word before the cursor", &on_tab);
    el_set(edit_, EL_BIND, "^I", "stride-complete", nullptr);
    el_set(edit_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_source(edit_, nullptr);  // the user's own keys, of ~/.editrc
  }
  ~EditedLines() override {
    if (history_) history_end(history_);
    if (edit_) el_end(edit_);
    if (in_) fclose(in_);
    if (out_) fclose(out_);
  }
  bool works() const { return edit_ != nullptr && history_ != nullptr; }

  ExitStatus next(std::string* line, bool* end) override {
    *end = false;
    const Characters characters;
    const WakesUp wakes_up;
    for (;;) {
      int count = 0;
      errno = 0;
      const char* text = el_gets(edit_, &count);
      if (text && count > 0) {
        line->assign(text, static_cast<size_t>(count));
        while (line->ends_with('\n') || line->ends_with('\r')) line->pop_back();
        remember(*line);
        return {};
      }
      const int error = errno;
      if (count < 0 && interrupted()) {
        show("^C\n");
        return ExitStatus::interrupted();
      }
      if (count < 0 && error == EINTR) {
        keep_typed();
        continue;
      }
      show("\n");
      if (count < 0 && error != 0) return ExitStatus::from_errno(error, "terminal", "read");
      *end = true;
      return {};
    }
  }

 private:
  static char* prompt_of(EditLine* edit) { return owner(edit)->prompt_.data(); }
  static unsigned char on_tab(EditLine* edit, wint_t) { return owner(edit)->complete_word(); }
  static EditedLines* owner(EditLine* edit) {
    void* owner = nullptr;
    el_get(edit, EL_CLIENTDATA, &owner);
    return static_cast<EditedLines*>(owner);
  }

  void show(const std::string& text) const {
    std::fputs(text.c_str(), out_);
    std::fflush(out_);
  }

  // A line that begins with a blank is not kept, so that there is a way to hide one.
  void remember(const std::string& line) {
    if (line.empty() || line[0] == ' ' || line == last_) return;
    HistEvent event;
    history(history_, &event, H_ENTER, line.c_str());
    file_.append(line);
    last_ = line;
  }

  // What was typed before the process was stopped is typed again.
  void keep_typed() {
    const LineInfo* info = el_line(edit_);
    const std::string typed(info->buffer, info->lastchar);
    show("\r");
    if (!typed.empty()) el_push(edit_, typed.c_str());
  }

  unsigned char complete_word() {
    const LineInfo* info = el_line(edit_);
    const std::string line(info->buffer, info->cursor);
    const Completion found = complete_(line);
    if (found.words.empty()) return CC_REFRESH_BEEP;
    const std::string raw = line.substr(found.begin);
    const std::string common = common_beginning(found.words);
    std::string word = as_word(common);
    if (found.words.size() > 1 && word != common) word = raw;
    // A folder's name goes on.
    if (found.words.size() == 1 && !word.ends_with('/')) word += ' ';
    if (word == raw) {
      list(found.words);
      return CC_REDISPLAY;
    }
    if (word.starts_with(raw)) {
      word.erase(0, raw.size());
    } else {
      el_deletestr(edit_, characters_of(raw));
    }
    return el_insertstr(edit_, word.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  }

  // The words in rows below the line, as many in a row as a narrow terminal holds.
  void list(const Names& words) const {
    constexpr size_t width = 78;
    size_t longest = 0;
    for (const std::string& word : words) longest = std::max(longest, word.size());
    const size_t column = longest + 2, columns = std::max<size_t>(1, width / column);
    std::string text = "\n";
    for (size_t i = 0; i < words.size(); ++i) {
      const bool last = (i + 1) % columns == 0 || i + 1 == words.size();
      text += words[i] + (last ? "\n" : std::string(column - words[i].size(), ' '));
    }
    show(text);
  }

  std::string prompt_, last_;
  HistoryFile file_;
  std::function<Completion(std::string_view)> complete_;
  FILE* in_ = nullptr;
  FILE* out_ = nullptr;
  EditLine* edit_ = nullptr;
  History* history_ = nullptr;
};

}  // namespace

std::unique_ptr<LineSource> edited_lines(const Terminal& terminal, HistoryFile history,
                                         std::function<Completion(std::string_view)> complete) {
  auto lines = std::make_unique<EditedLines>(terminal, std::move(history), std::move(complete));
  if (!lines->works()) return nullptr;
  return lines;
}

}  // namespace stride::cli
