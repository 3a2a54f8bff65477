// stride as a process, with pipes and signals.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/becomes_true.h"
#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"

namespace stride::cli {

using test::becomes_true;

class ProcessFixture : public CliFixture {
 protected:
  // Starts stride with these descriptors; -1: /dev/null.
  pid_t start(const std::vector<std::string>& arguments, int in, int out, int error) {
    std::vector<char*> argv = {const_cast<char*>("stride")};
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (in >= 0) posix_spawn_file_actions_adddup2(&actions, in, 0);
    if (out >= 0) posix_spawn_file_actions_adddup2(&actions, out, 1);
    if (error >= 0) posix_spawn_file_actions_adddup2(&actions, error, 2);
    pid_t pid = 0;
    CHECK(posix_spawn(&pid, STRIDE_PROGRAM, &actions, nullptr, argv.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
  }
  static int wait(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  // Whether the process catches interrupts by now, or within a minute.
  static bool catches_interrupts(pid_t pid) {
    for (int i = 0; i < 6000; ++i) {
      std::ifstream status("/proc/" + std::to_string(pid) + "/status");
      for (std::string line; std::getline(status, line);)
        if (line.starts_with("SigCgt:") &&
            std::stoull(line.substr(7), nullptr, 16) >> (SIGINT - 1) & 1)
          return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  struct Pipe {
    Pipe() {
      if (pipe2(ends, O_CLOEXEC) != 0) abort();
    }
    ~Pipe() {
      ::close(ends[0]);
      ::close(ends[1]);
    }
    int ends[2];
  };
};

}  // namespace stride::cli
