// A service that Prometheus watches: it counts the lines of the standard input by their first word,
// and answers GET /metrics on a port of this machine with what its database does.
//
//   g++ -std=c++20 -O2 -pthread metrics_endpoint.cc $(pkg-config --cflags --libs stridedb)
//   mv a.out metrics_endpoint
//   printf 'red 1\nblue 2\nred 3\n' | ./metrics_endpoint counts.db      # prints the text once
//   ./metrics_endpoint counts.db 9464 < /var/log/app.log &
//   curl http://127.0.0.1:9464/metrics
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "engine/database.h"
#include "engine/event_listener.h"

namespace {

// Ends the program where a call has failed. The text says what to do about it.
void check(const stride::Status& status) {
  if (status.ok()) return;
  std::cerr << status.to_string() << "\n";
  std::exit(1);
}
template <class T>
T take(stride::Result<T> result) {
  check(result.status());
  return std::move(*result);
}

// What a person should be told at once goes to the standard error; the rest is in the file LOG.
class Alarm : public stride::EventListener {
 public:
  void on_event(const stride::Event& event) override {
    if (event.kind == stride::EventKind::poisoned || event.kind == stride::EventKind::stalled)
      std::cerr << stride::to_string(event) << "\n";
  }
};

// One request after the other is enough for a scraper that comes every few seconds.
void serve(const stride::Database& db, int listener) {
  for (;;) {
    const int client = accept(listener, nullptr, nullptr);
    if (client < 0) return;
    char request[4096];
    if (read(client, request, sizeof request) > 0) {
      const std::string body = stride::prometheus_text(db.metrics());
      const std::string answer =
          "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: " +
          std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body;
      for (size_t sent = 0; sent < answer.size();) {
        const ssize_t n = send(client, answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
        if (n <= 0) break;
        sent += static_cast<size_t>(n);
      }
    }
    close(client);
  }
}

int listen_on(const char* port) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(std::atoi(port)));
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener, 16) != 0) {
    std::cerr << "port " << port << " cannot be listened on\n";
    std::exit(1);
  }
  return listener;
}

void count_lines(stride::Database& db) {
  const stride::Table counts =
      take(db.open_or_create_table("counts", {.numbers = stride::NumberType::i64}));
  for (std::string line; std::getline(std::cin, line);) {
    stride::WriteTransaction t = db.begin();
    check(t.accumulate(counts, line.substr(0, line.find(' ')), 1));
    check(t.commit(stride::Durability::flush));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: metrics_endpoint DATABASE [PORT]\n";
    return 2;
  }
  stride::Options options;
  options.event_listener = std::make_shared<Alarm>();
  auto db = take(stride::Database::open(argv[1], options));
  if (argc < 3) {
    count_lines(*db);
    std::cout << stride::prometheus_text(db->metrics());
  } else {
    const int listener = listen_on(argv[2]);
    std::thread endpoint([&] { serve(*db, listener); });
    count_lines(*db);
    shutdown(listener, SHUT_RDWR);
    endpoint.join();
    close(listener);
  }
  check(db->close());
}
